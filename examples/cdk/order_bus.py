"""An order bus in a CDK app: a function publishes, and two queues of the app get what they are bound to."""

from aws_cdk import App, CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from signalbox_cdk import Exchange

PUBLISH = """
import boto3, os

def handler(event, context):
    topic = {"topic": {"DataType": "String", "StringValue": event["topic"]}}
    boto3.client("sqs").send_message(QueueUrl=os.environ["BUS"], MessageBody=event["body"], MessageAttributes=topic)
"""

app = App()
stack = Stack(app, "shop")
mail, audit = sqs.Queue(stack, "Mail", queue_name="shop-mail"), sqs.Queue(stack, "Audit", queue_name="shop-audit")
publisher = lambda_.Function(
    stack,
    "Publisher",
    function_name="shop-publisher",
    code=lambda_.Code.from_inline(PUBLISH),
    handler="index.handler",
    runtime=lambda_.Runtime.PYTHON_3_13,
)

bus = Exchange(stack, "Bus", add_alarms=False, removal_policy=RemovalPolicy.DESTROY)
bus.bind(mail, "orders.new")
bus.bind(audit, "orders.#")
bus.grant_publish(publisher)
publisher.add_environment("BUS", bus.queue.queue_url)
for name, value in bus.outputs.items():
    CfnOutput(stack, name, value=value)

app.synth()
