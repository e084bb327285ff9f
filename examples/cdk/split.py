"""A split for a consumer that exists in a CDK app: developers share its queue."""

from aws_cdk import App, CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from signalbox_cdk import Splitting

app = App()
stack = Stack(app, "mail")
queue = sqs.Queue(stack, "Letters", queue_name="mail-letters")
consumer = lambda_.Function(
    stack,
    "Consumer",
    code=lambda_.Code.from_inline("def handler(event, context): pass"),
    handler="index.handler",
    runtime=lambda_.Runtime.PYTHON_3_13,
    environment={"QUEUE_URL": queue.queue_url},
)
consumer.add_event_source(SqsEventSource(queue))

split = Splitting(stack, "Split", consumers=[consumer], add_alarms=False, removal_policy=RemovalPolicy.DESTROY)
for name, value in split.outputs.items():
    CfnOutput(stack, name, value=value)

app.synth()
