"""An order bus in a CDK app: a topic exchange, and a function of the app that may publish to it."""

from aws_cdk import App, CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_lambda as lambda_
from signalbox_cdk import Exchange, Options

app = App()
stack = Stack(app, "shop")
publisher = lambda_.Function(
    stack,
    "Publisher",
    code=lambda_.Code.from_inline("def handler(event, context): pass"),
    handler="index.handler",
    runtime=lambda_.Runtime.PYTHON_3_13,
)

bus = Exchange(stack, "Bus", options=Options(add_alarms=False, removal_policy=RemovalPolicy.DESTROY))
bus.grant_publish(publisher)
for name, value in bus.outputs.items():
    CfnOutput(stack, name, value=value)

app.synth()
