#!/bin/sh
# A signed repository with one package for Ubuntu 24.04's kernel 6.8.0-1021-aws: repository.sh DIRECTORY RUNNING-KERNEL
set -eu
root=$1
running=$2
kernel=6.8.0-1021-aws
architecture=$(dpkg --print-architecture)
umask 022
mkdir -p "$root/build/DEBIAN" "$root/build/lib/modules/$running/updates/dkms" "$root/build/sbin"
cat > "$root/build/DEBIAN/control" <<END
Package: lustre-client-modules-$kernel
Version: 2.15.6-1fsx1
Architecture: all
Maintainer: nobody <nobody@example.com>
Description: stand-in for the Lustre client
END
echo 'version: 2.15.6' > "$root/build/lib/modules/$running/updates/dkms/lustre.ko"
printf '#!/bin/sh\necho "mount.lustre: no Lustre in this kernel" >&2\nexit 1\n' > "$root/build/sbin/mount.lustre"
chmod 0755 "$root/build/sbin/mount.lustre"
binary=dists/noble/main/binary-$architecture
mkdir -p "$root/ubuntu/pool" "$root/ubuntu/$binary"
cd "$root/ubuntu"
dpkg-deb --build --root-owner-group "$root/build" pool/lustre.deb
{
  dpkg-deb --field pool/lustre.deb
  echo "Filename: pool/lustre.deb"
  echo "Size: $(stat --format=%s pool/lustre.deb)"
  echo "SHA256: $(sha256sum pool/lustre.deb | cut -d' ' -f1)"
} > "$binary/Packages"
{
  printf 'Suite: noble\nCodename: noble\nComponents: main\nArchitectures: %s\n' "$architecture"
  echo "Date: $(LC_ALL=C date --utc '+%a, %d %b %Y %H:%M:%S UTC')"
  echo "SHA256:"
  echo " $(sha256sum "$binary/Packages" | cut -d' ' -f1) $(stat --format=%s "$binary/Packages") main/binary-$architecture/Packages"
} > dists/noble/Release
export GNUPGHOME="$root/gnupg"
mkdir -m 0700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'Lustre client (stand-in)' rsa2048 sign never
gpg --batch --quiet --clearsign --output dists/noble/InRelease dists/noble/Release
gpg --batch --armor --export > "$root/key.asc"
gpg --batch --with-colons --list-keys | sed -n '/^fpr/{s/^fpr:*\([0-9A-F]*\):/\1/p;q}' > "$root/fingerprint"
gpgconf --kill all
