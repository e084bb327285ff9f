"""A split for a consumer that exists in a CDK app: developers share its queue."""

from aws_cdk import App, CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from signalbox_cdk import Options, Splitting

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
queue.grant_consume_messages(consumer)

split = Splitting(
    stack,
    "Split",
    consumers=[consumer],
    queues=[queue],
    options=Options(add_alarms=False, removal_policy=RemovalPolicy.DESTROY),
)
for name, value in split.outputs.items():
    CfnOutput(stack, name, value=value)

app.synth()
