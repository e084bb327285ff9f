"""Log groups: encrypted, with the retention of the settings."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.settings.config import Config

DAYS = logs.RetentionDays
RETENTION = {
    1: DAYS.ONE_DAY,
    3: DAYS.THREE_DAYS,
    5: DAYS.FIVE_DAYS,
    7: DAYS.ONE_WEEK,
    14: DAYS.TWO_WEEKS,
    30: DAYS.ONE_MONTH,
    60: DAYS.TWO_MONTHS,
    90: DAYS.THREE_MONTHS,
    120: DAYS.FOUR_MONTHS,
    150: DAYS.FIVE_MONTHS,
    180: DAYS.SIX_MONTHS,
    365: DAYS.ONE_YEAR,
    400: DAYS.THIRTEEN_MONTHS,
    545: DAYS.EIGHTEEN_MONTHS,
    731: DAYS.TWO_YEARS,
    1096: DAYS.THREE_YEARS,
    1827: DAYS.FIVE_YEARS,
    2192: DAYS.SIX_YEARS,
    2557: DAYS.SEVEN_YEARS,
    2922: DAYS.EIGHT_YEARS,
    3288: DAYS.NINE_YEARS,
    3653: DAYS.TEN_YEARS,
}


class LogGroup(logs.LogGroup):
    """A log group with the stage's key; it is deleted with its stack, since the history is the durable record."""

    def __init__(
        self, scope: Construct, name: str, *, key: kms.IKey, config: Config, log_group_name: str | None = None
    ) -> None:
        super().__init__(
            scope,
            name,
            log_group_name=log_group_name,
            retention=RETENTION[config.log_retention_days],
            encryption_key=key,
            removal_policy=RemovalPolicy.DESTROY,
        )
