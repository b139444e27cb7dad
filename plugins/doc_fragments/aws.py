# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How modules and the inventory reach AWS. The options are those that amazon.aws's base class of modules adds.

They are written down here since Galaxy shows the documentation of a collection without those that it depends on.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  region:
    description: The region. The default is E(AWS_REGION), then that of the profile.
    type: str
    aliases: [aws_region]
  profile:
    description: A profile of the AWS configuration, instead of keys. The default is E(AWS_PROFILE).
    type: str
    aliases: [aws_profile]
  access_key:
    description: The id of an access key. The default is E(AWS_ACCESS_KEY_ID), then what boto3 finds by itself.
    type: str
    aliases: [aws_access_key_id, aws_access_key]
  secret_key:
    description: The secret of the access key. The default is E(AWS_SECRET_ACCESS_KEY).
    type: str
    aliases: [aws_secret_access_key, aws_secret_key]
  session_token:
    description: The token of temporary credentials. The default is E(AWS_SESSION_TOKEN).
    type: str
    aliases: [aws_session_token]
  endpoint_url:
    description: An address to call in place of AWS's own, as the sandbox has one. The default is E(AWS_URL).
    type: str
    aliases: [aws_endpoint_url]
  aws_ca_bundle:
    description: A file with the certificate authorities to trust. The default is E(AWS_CA_BUNDLE).
    type: path
  validate_certs:
    description: Whether certificates are checked. Set O(aws_ca_bundle) rather than turning this off.
    type: bool
    default: true
  aws_config:
    description: Settings of botocore's client, as in U(https://botocore.amazonaws.com/v1/documentation/api/latest/reference/config.html).
    type: dict
  debug_botocore_endpoint_logs:
    description: Whether the result lists the calls that were made, in C(resource_actions).
    type: bool
    default: false
requirements:
  - boto3 >= 1.41.0
  - botocore >= 1.41.0
notes:
  - Credentials and configuration files are those of the host on which the module runs, which is usually the controller.
"""

    PLUGINS = r"""
options:
  region:
    description: The region.
    type: str
    aliases: [aws_region]
    env:
      - name: AWS_REGION
  profile:
    description: A profile of the AWS configuration, instead of keys.
    type: str
    aliases: [aws_profile]
    env:
      - name: AWS_PROFILE
      - name: AWS_DEFAULT_PROFILE
  access_key:
    description: The id of an access key. Where it is missing, boto3 looks for credentials by itself.
    type: str
    aliases: [aws_access_key_id, aws_access_key]
    env:
      - name: AWS_ACCESS_KEY_ID
      - name: AWS_ACCESS_KEY
  secret_key:
    description: The secret of the access key.
    type: str
    aliases: [aws_secret_access_key, aws_secret_key]
    env:
      - name: AWS_SECRET_ACCESS_KEY
      - name: AWS_SECRET_KEY
  session_token:
    description: The token of temporary credentials.
    type: str
    aliases: [aws_session_token]
    env:
      - name: AWS_SESSION_TOKEN
  endpoint_url:
    description: An address to call in place of AWS's own, as the sandbox has one.
    type: str
    aliases: [aws_endpoint_url]
    env:
      - name: AWS_URL
  assume_role_arn:
    description: The ARN of a role of IAM to take on for the look-up; the credentials must be allowed to.
    aliases: [iam_role_arn]
requirements:
  - boto3 >= 1.41.0
  - botocore >= 1.41.0
"""
