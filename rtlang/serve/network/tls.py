"""TLS from the settings of a server."""

from __future__ import annotations

import ssl

from rtlang.contract.config import ServeConfig
from rtlang.contract.errors import ConfigError


def tls_context(config: ServeConfig) -> ssl.SSLContext | None:
    """The server's context (TLS 1.2 or later); None without a certificate.

    Raises:
        ConfigError: a file is missing, is no PEM file, or the key is not that of the certificate.
    """
    if config.tls_certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_certificate, config.tls_key, password=_no_password)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        name = "tls_certificate" if config.tls_key is None else "tls_certificate, tls_key"
        raise ConfigError(name, config.tls_certificate, f"expected PEM files that belong together: {error}") from None
    if config.tls_client_ca is not None:
        try:
            context.load_verify_locations(config.tls_client_ca)
        except (OSError, ValueError) as error:
            raise ConfigError("tls_client_ca", config.tls_client_ca, f"expected a PEM file: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> bytes:
    raise ValueError("the key is encrypted; expected one without a password")
