"""Certificates and kubeconfigs of a cluster, as a Kubernetes of one's own needs them.

See https://kubernetes.io/docs/setup/best-practices/certificates/ for names and organisations.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=3650)
USERS = {
    "admin": ("sandbox-administrator", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
}


@dataclass(frozen=True)
class Authority:
    """The CA of a cluster and everything that it signs, all in one folder."""

    folder: Path

    @property
    def certificate(self) -> str:
        """The CA's certificate as PEM."""
        return (self.folder / "ca.crt").read_text(encoding="ascii")

    def _write(self, name: str, data: bytes, secret: bool = False) -> None:
        with os.fdopen(
            os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if secret else 0o644), "wb"
        ) as file:
            file.write(data)

    def make(self, addresses: Iterable[str], server: str) -> None:
        """Everything of a control plane that is reached at ``addresses``; its own programs call ``server``."""
        if (self.folder / "complete").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._make_authority()
        names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1")
        self.sign("apiserver", "kube-apiserver", hosts=(*names, *addresses))
        self.sign("apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
        self.sign("front-proxy-client", "front-proxy-client")
        self.sign("webhook", "sandbox-authenticator", hosts=("localhost", "127.0.0.1"))
        for user, (name, organisation) in USERS.items():
            self.sign(user, name, organisation)
            self.write_kubeconfig(self.folder / f"{user}.kubeconfig", user, server)
        accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._write("service-accounts.key", _pem(accounts), secret=True)
        public = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        self._write("service-accounts.pub", accounts.public_key().public_bytes(*public))
        self._write("complete", b"")

    def _make_authority(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("kubernetes")
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        built = _builder(name, key.public_key()).issuer_name(name).add_extension(usage, critical=True)
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._write("ca.key", _pem(key), secret=True)
        self._write("ca.crt", built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def sign(self, file: str, name: str, organisation: str = "", hosts: Iterable[str] = ()) -> None:
        """Write ``FILE.crt`` and ``FILE.key`` for a client, or for a server at ``hosts``."""
        authority = x509.load_pem_x509_certificate(self.certificate.encode())
        signer = serialization.load_pem_private_key((self.folder / "ca.key").read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        built = _builder(_name(name, organisation), key.public_key()).issuer_name(authority.subject)
        built = built.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        alternatives = [_general_name(host) for host in hosts]
        if alternatives:
            built = built.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        certificate = built.sign(signer, hashes.SHA256())
        self._write(f"{file}.key", _pem(key), secret=True)
        self._write(f"{file}.crt", certificate.public_bytes(serialization.Encoding.PEM))

    def write_kubeconfig(self, path: Path, file: str, server: str) -> None:
        """Write the kubeconfig (JSON is YAML) of a client that was signed as ``file``."""
        text = {name: _base64((self.folder / name).read_bytes()) for name in ("ca.crt", f"{file}.crt", f"{file}.key")}
        user = {"client-certificate-data": text[f"{file}.crt"], "client-key-data": text[f"{file}.key"]}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "eks", "cluster": {"server": server, "certificate-authority-data": text["ca.crt"]}}],
            "users": [{"name": file, "user": user}],
            "contexts": [{"name": "eks", "context": {"cluster": "eks", "user": file}}],
            "current-context": "eks",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1), encoding="ascii")


def _builder(name: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    built = x509.CertificateBuilder().subject_name(name).public_key(key).serial_number(x509.random_serial_number())
    return built.not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + LIFETIME)


def _name(name: str, organisation: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organisation:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
