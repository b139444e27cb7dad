#!/usr/bin/env bash
# What the tutorial of Neuron does by hand to launch trn1.32xlarge, the measure for efa_instance: one launch, then for each
# node its wait, its primary interface, a free Elastic IP or a new one, and the association.
#   launch.sh AWS COUNT IMAGE GROUP SUBNET
# It is the tutorial's own example with a number of nodes, the key pair left out and AWS's queries in place of jq.
set -euo pipefail
aws=$1 count=$2 image=$3 group=$4 subnet=$5

interfaces=()
for card in {0..7}; do
  interfaces+=("NetworkCardIndex=$card,DeviceIndex=$((card > 0)),Groups=$group,SubnetId=$subnet,InterfaceType=efa")
done
instances=$("$aws" ec2 run-instances --count "$count" --image-id "$image" --instance-type trn1.32xlarge \
  --tag-specifications 'ResourceType=instance,Tags=[{Key=Name,Value=_Trainium-Big}]' \
  --network-interfaces "${interfaces[@]}" --query 'Instances[].InstanceId' --output text)

for instance in $instances; do
  "$aws" ec2 wait instance-running --instance-ids "$instance"
  interface=$("$aws" ec2 describe-instances --instance-ids "$instance" --output text --query \
    'Reservations[0].Instances[0].NetworkInterfaces[?Attachment.DeviceIndex==`0`] | [0].NetworkInterfaceId')
  address=$("$aws" ec2 describe-addresses --query 'Addresses[?AssociationId==null] | [0].AllocationId' --output text)
  if [ "$address" = None ]; then
    address=$("$aws" ec2 allocate-address --domain vpc --query AllocationId --output text)
  fi
  "$aws" ec2 associate-address --allocation-id "$address" --network-interface-id "$interface" > /dev/null
done
