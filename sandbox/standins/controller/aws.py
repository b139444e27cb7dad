"""The machine's own AWS CLI; where there is none, a stand-in that knows ``aws ssm start-session``."""

import argparse
import json
import os
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.realpath(__file__))
others = [folder for folder in os.environ["PATH"].split(os.pathsep) if os.path.realpath(folder) != here]
real = shutil.which("aws", path=os.pathsep.join(others))
if real:
    os.execv(real, ["aws", *sys.argv[1:]])  # noqa: S606  # a list, no shell

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
