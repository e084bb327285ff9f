"""A live log in a CDK app: everyone may read what administrators publish, and new connections get the past events."""

from aws_cdk import App, CfnOutput, RemovalPolicy, Stack
from signalbox_cdk import Exchange, Live

app = App()
stack = Stack(app, "news")

bus = Exchange(
    stack,
    "Bus",
    ordered=True,
    exchange_name="xnews_public",  # subscribers may read public exchanges
    add_alarms=False,
    removal_policy=RemovalPolicy.DESTROY,
)
log = Live(stack, "Log", exchange=bus, anonymous="guest")
log.add_user("guest")
for name, value in log.outputs.items():
    CfnOutput(stack, name, value=value)

app.synth()
