"""The CDK app: reads the settings, creates the stacks, checks them and writes the templates."""

import os
import sys

from aws_cdk import App, CfnOutput, CliCredentialsStackSynthesizer, Environment, IStackSynthesizer, Tags, Validations
from aws_cdk import aws_iam as iam
from cdk_nag import AwsSolutionsChecks

from signalbox import __version__
from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES, InvalidBridgeList, parse_bridges
from stacks.settings.config import Config
from stacks.settings.context import InvalidConfig, read_config
from stacks.shared.acknowledgements import acknowledge
from stacks.shared.packaging import PackagingError
from stacks.signalbox_stack import SignalboxStack
from stacks.state_stack import StateStack


def build(app: App) -> tuple[StateStack, SignalboxStack]:
    """Create the stacks of the stage that the app's context describes."""
    # The CDK CLI passes the region of the credentials, to which a stage without the setting is deployed.
    config = read_config(app.node.get_all_context(), default_region=os.environ.get("CDK_DEFAULT_REGION"))
    bridges = check_bridges(config)
    options = {"env": Environment(region=config.region) if config.region else None}
    state = StateStack(app, f"{config.stage}-state", config=config, synthesizer=_synthesizer(config), **options)
    stack = SignalboxStack(
        app,
        config.stage,
        state=state,
        config=config,
        bridges=bridges,
        synthesizer=_synthesizer(config),
        **options,
    )
    if config.permissions_boundary:
        for one in (state, stack):
            boundary = iam.ManagedPolicy.from_managed_policy_name(one, "Boundary", config.permissions_boundary)
            iam.PermissionsBoundary.of(one).apply(boundary)
    acknowledge(state, stack, config)
    Tags.of(app).add("signalbox:stage", config.stage)
    CfnOutput(stack, "Version", value=__version__)
    return state, stack


def check_bridges(config: Config) -> tuple[str, ...]:
    """Return the fingerprints of the stage's bridges.

    Rejects an invalid list at synthesis, as upstream's broker does at its start.
    """
    if config.bridge_list_file is None:
        return tuple(DEFAULT_BRIDGES)
    try:
        return tuple(parse_bridges(config.bridge_list_file.read_text(encoding="utf-8")))
    except InvalidBridgeList as error:
        problems = str(error).split("; ")
        raise InvalidConfig(tuple(f"bridge_list_file: {problem}" for problem in problems)) from error


def check(app: App) -> None:
    """Fail the synthesis for every finding of cdk-nag without an acknowledgement."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))


def main() -> int:
    """Synthesize; print all problems of the settings and return the exit status."""
    app = App()
    try:
        build(app)
    except InvalidConfig as error:
        return _refuse(error.problems)
    except PackagingError as error:
        return _refuse((str(error),))
    check(app)
    app.synth()
    return 0


def _synthesizer(config: Config) -> IStackSynthesizer | None:
    # The emulator does not support the conditions in the trust policies of CDK's deployment roles.
    return CliCredentialsStackSynthesizer() if config.local else None


def _refuse(problems: tuple[str, ...]) -> int:
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)  # the CDK CLI prints it
    return 2


if __name__ == "__main__":
    sys.exit(main())
