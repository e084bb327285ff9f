"""An endpoint of AWS Glue on loopback for Java's clients: moto's catalog, called with boto3."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import boto3
from botocore import xform_name
from botocore.exceptions import ClientError
from moto import mock_aws

REGION = "eu-central-1"


@contextmanager
def glue_endpoint() -> Iterator[str]:
    """Yield the URL of an empty catalog."""
    with mock_aws():
        glue = boto3.client("glue", region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b")

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                operation = xform_name(self.headers["X-Amz-Target"].rpartition(".")[2])
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    status, answer = 200, getattr(glue, operation)(**request)
                except ClientError as error:
                    details = error.response["Error"]
                    status, answer = 400, {"__type": details["Code"], "Message": details["Message"]}
                answer.pop("ResponseMetadata", None)
                body = json.dumps(answer, default=datetime.timestamp).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write no log."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
