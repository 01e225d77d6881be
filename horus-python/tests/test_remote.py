"""Stores and pictures on servers of this machine: HTTP, HTTPS and S3."""

from __future__ import annotations

import datetime
import functools
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import numcodecs
import numpy as np
import pytest
import zarr
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from moto.server import ThreadedMotoServer

import horus_image as hi

PICTURE = (np.arange(300 * 200).reshape(300, 200) * 7 % 60_000).astype(np.uint16)


@contextmanager
def serving(folder: Path, wrap: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server of a folder, which sends no ranges."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        if wrap:
            server.socket = wrap.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{'https' if wrap else 'http'}://127.0.0.1:{server.server_port}"
        server.shutdown()


def stored(folder: Path) -> None:
    """Stores by zarr and by Horus, and a picture."""
    shards = {"chunks": (50, 40), "shards": (100, 80)}
    zarr.create_array(folder / "shards.zarr", shape=PICTURE.shape, dtype="u2", **shards)[...] = PICTURE  # type: ignore[arg-type]
    for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd"):
        array = zarr.create_array(
            folder / f"{cname}.zarr", shape=PICTURE.shape, dtype="u2", chunks=(100, 64), zarr_format=2, compressors=numcodecs.Blosc(cname)
        )
        array[...] = PICTURE
    hi.save(folder / "ome.zarr", PICTURE, sizes=2)
    hi.save(folder / "picture.tif", PICTURE, tile=64)


def check(address: str) -> None:
    names = ["shards.zarr", "lz4.zarr", "lz4hc.zarr", "blosclz.zarr", "zlib.zarr", "zstd.zarr", "ome.zarr", "picture.tif"]
    for name in names:
        image = hi.open(f"{address}/{name}")
        np.testing.assert_array_equal(image[250:299, 3:190].compute(), PICTURE[250:299, 3:190], name)
        np.testing.assert_array_equal(image.compute(), PICTURE, name)
    assert hi.open(f"{address}/ome.zarr", size=1).shape == (150, 100)


def test_http(tmp_path: Path) -> None:
    stored(tmp_path)
    with serving(tmp_path) as address:
        check(address)
        for name, cause in (("none.zarr", "no zarr.json"), ("none.tif", "404")):
            with pytest.raises(OSError, match=f"{address}/{name}.*{cause}"):
                hi.open(f"{address}/{name}")
    with pytest.raises(OSError, match="servers are only read"):
        hi.save("http://127.0.0.1:1/a.zarr", PICTURE)


def test_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path)
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        s3.create_bucket(Bucket="cells", ACL="public-read")
        for path in tmp_path.rglob("*"):
            if path.is_file():
                key = f"of/day 1/{path.relative_to(tmp_path).as_posix()}"
                s3.upload_file(str(path), "cells", key, ExtraArgs={"ACL": "public-read"})
        s3.create_bucket(Bucket="private")
        s3.put_object(Bucket="private", Key="a.zarr/zarr.json", Body=b"{}")
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        check("s3://cells/of/day 1")
        with pytest.raises(OSError, match="s3://private/a.zarr.*403"):
            hi.open("s3://private/a.zarr")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        check("s3://cells/of/day 1")
        with pytest.raises(OSError, match="s3://private/a.zarr.*neither `array` nor `group`"):
            hi.open("s3://private/a.zarr")
        with pytest.raises(OSError, match="s3://none/a.zarr"):
            hi.open("s3://none/a.zarr")
        with pytest.raises(OSError, match="s3://cells/none.zarr.*no zarr.json"):
            hi.open("s3://cells/none.zarr")
    finally:
        server.stop()


def test_certificates_are_checked(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nobody")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "both.pem").write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    with serving(tmp_path, context) as address, pytest.raises(OSError, match=f"{address}/a.zarr.*certificate"):
        hi.open(f"{address}/a.zarr")
