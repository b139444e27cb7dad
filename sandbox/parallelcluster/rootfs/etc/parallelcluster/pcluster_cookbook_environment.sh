# shellcheck shell=sh
export CFN_BOOTSTRAP_VIRTUALENV_PATH=/opt/parallelcluster/bin
export AWS_CONFIG_FILE=/etc/aws/config AWS_EC2_METADATA_DISABLED=true
