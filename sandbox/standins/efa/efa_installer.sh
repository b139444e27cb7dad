#!/usr/bin/env bash
# Stand-in for the EFA installer: the same options and the same marks on the system, with packages that hold stand-ins.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# The real one has its version there and nowhere else.
source ./env.sh
version=$EFA_INSTALLER_VERSION
marker=/opt/amazon/efa_installed_packages
confirmed='' kmod=yes minimal='' limits=yes gdr='' verify=yes mpi=openmpi4,openmpi5 uninstall='' debug=no
for argument; do
  case $argument in
    -y | --yes) confirmed=yes ;;
    -k | --skip-kmod) kmod='' ;;
    -g | --enable-gdr) gdr=yes ;;
    -n | --no-verify) verify='' ;;
    -l | --skip-limit-conf) limits='' ;;
    -m | --minimal) minimal=yes ;;
    -u | --uninstall) uninstall=yes ;;
    --mpi=*) mpi=${argument#--mpi=} ;;
    --check-signatures) ;;
    *) echo "efa_installer.sh: unknown option $argument" >&2; exit 1 ;;
  esac
done
[ "$(id -u)" = 0 ] || { echo "efa_installer.sh must be run as root" >&2; exit 1; }
[ "$confirmed" ] || { echo "efa_installer.sh: confirm with --yes" >&2; exit 1; }
. /etc/os-release
folder=DEBS/${ID^^}${VERSION_ID//./}/x86_64
echo "= EFA Installer Version: $version ="
[ -d "$folder" ] || { echo "Error: EFA installer does not support $PRETTY_NAME" >&2; exit 1; }

packages=(efa-config efa-profile rdma-core-efa)
[ -z "$kmod" ] || packages+=(efa)
if [ -z "$minimal" ]; then
  packages+=(libfabric-aws-bin)
  case $mpi in *openmpi4*) packages+=(openmpi40-aws) ;; esac
  case $mpi in *openmpi5*) packages+=(openmpi50-aws) ;; esac
fi
if [ "$uninstall" ]; then
  apt-get remove -qq --yes efa-config efa-profile rdma-core-efa efa libfabric-aws-bin openmpi40-aws openmpi50-aws
  rm -f "$marker"
  exit 0
fi
# As the real one: from the distribution, with apt's lists as they are.
echo "== Installing EFA dependencies =="
if ! DEBIAN_FRONTEND=noninteractive apt-get install -y pciutils environment-modules < /dev/null; then
  echo "Error: failed to install third-party dependencies, exiting" >&2
  exit 1
fi
files=()
for package in "${packages[@]}"; do files+=("./$folder/${package}_"*.deb); done
DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends --allow-downgrades "${files[@]}" < /dev/null
if [ "$limits" ]; then
  printf '%s\n' '* soft memlock unlimited' '* hard memlock unlimited' > /etc/security/limits.d/01_efa.conf
fi
mkdir -p /opt/amazon/efa/test
install -m 0755 efa_test.sh /opt/amazon/efa/test/efa_test.sh
{
  echo "# EFA installer version: $version"
  echo "# Debug packages installed: $debug"
  echo "# Packages installed:"
  for file in "${files[@]}"; do basename "$file" .deb; done | paste -sd ' '
} > "$marker"
action=logout/login
if [ "$kmod" ]; then
  # The real one runs rmmod, which fails where something uses the module.
  if [ -e /etc/simulated/efa-module-in-use ] && [ -e /run/simulated-modules/efa ]; then
    echo "Failed to unload EFA kernel module."
    echo "Reboot is needed!" >&2
    action=reboot
  fi
  modprobe efa
fi
if [ "$verify" ] && [ -z "$minimal" ] && [ -n "$kmod" ] && [ -z "$gdr" ]; then
  /opt/amazon/efa/test/efa_test.sh || { echo "Error: EFA was installed, and its test failed" >&2; exit 1; }
fi
echo "EFA installation complete."
echo "- Please $action to complete the installation."
