"""The machine's own AWS CLI; where there is none, a stand-in: ``aws ssm start-session``, ``aws eks get-token``."""

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta, timezone

here = os.path.dirname(os.path.realpath(__file__))
others = [folder for folder in os.environ["PATH"].split(os.pathsep) if os.path.realpath(folder) != here]
real = shutil.which("aws", path=os.pathsep.join(others))
if real:
    os.execv(real, ["aws", *sys.argv[1:]])  # noqa: S606  # a list, no shell

if sys.argv[1:] == ["--version"]:
    print("aws-cli/0 sandbox")
    sys.exit(0)

if "get-token" in sys.argv:
    # As customizations/eks/get_token.py of the AWS CLI makes it; a client of STS would read that service's whole model.
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.session import Session

    parser = argparse.ArgumentParser(prog="aws")
    parser.add_argument("words", nargs=2)
    for name in ("--region", "--cluster-name"):
        parser.add_argument(name, required=True)
    parser.add_argument("--output", choices=["json"])
    asked = parser.parse_args()
    sts = os.environ.get("AWS_ENDPOINT_URL", f"https://sts.{asked.region}.amazonaws.com")
    call = AWSRequest("GET", f"{sts}/?Action=GetCallerIdentity&Version=2011-06-15")
    call.headers["x-k8s-aws-id"] = asked.cluster_name
    credentials = Session().get_credentials()
    if credentials is None:
        sys.exit("Unable to locate credentials.")
    SigV4QueryAuth(credentials, "sts", asked.region, expires=60).add_auth(call)
    token = "k8s-aws-v1." + base64.urlsafe_b64encode(str(call.url).encode()).decode().rstrip("=")
    kind = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1"}
    ends = (datetime.now(timezone.utc) + timedelta(minutes=14)).strftime("%Y-%m-%dT%H:%M:%SZ")
    print(json.dumps({**kind, "spec": {}, "status": {"expirationTimestamp": ends, "token": token}}))
    sys.exit(0)

import boto3  # noqa: E402  # only where it is needed

parser = argparse.ArgumentParser(prog="aws")
parser.add_argument("service", choices=["ssm"])
parser.add_argument("operation", choices=["start-session"])
for name in ("--target", "--region", "--document-name", "--parameters"):
    parser.add_argument(name, required=True)
parser.add_argument("--profile")
given = parser.parse_args()
key, _equals, value = given.parameters.partition("=")
request = {"Target": given.target, "DocumentName": given.document_name, "Parameters": {key: [value]}}
client = boto3.Session(profile_name=given.profile, region_name=given.region).client("ssm")
try:
    answer = client.start_session(**request)
except client.exceptions.ClientError as error:
    sys.exit(f"\n{error}")
answer = {name: answer[name] for name in ("SessionId", "TokenValue", "StreamUrl")}
environment = {**os.environ, "AWS_SSM_START_SESSION_RESPONSE": json.dumps(answer)}
command = ["AWS_SSM_START_SESSION_RESPONSE", given.region, "StartSession", given.profile or "", json.dumps(request)]
plugin = ["session-manager-plugin", *command, client.meta.endpoint_url]
sys.exit(subprocess.run(plugin, env=environment, check=False).returncode)
