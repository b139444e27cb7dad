# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of a dataset in S3 with addresses that need no credentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import calls as s3
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import file_path, split_s3, wrapped

# All their addresses go to the host at once.
MOST_OBJECTS = 20000
LONGEST = 604800


def describe(
    connect: Callable[[dict[str, Any]], Any], source: str, signed: bool, expires: int, host_endpoint: str = ""
) -> dict[str, Any]:
    """``files`` (path, url, size in bytes, tag), ``size`` of all, ``md5_tags``.

    Args:
        connect: makes a client of S3 from further arguments.
        expires: seconds for which the addresses are valid.
        host_endpoint: the endpoint for the addresses, '' for that of the client.

    Raises:
        TrainiumError, ValueError: with one sentence.
    """
    bucket, key = split_s3(source)
    if not 1 <= expires <= LONGEST:
        raise ValueError(f"expires is {expires}; take 1 to {LONGEST} seconds")
    client = connect(s3.settings(signed))
    prefix = key if not key or key.endswith("/") else ""
    if prefix == key:
        listed = s3.list_objects(client, bucket, key, MOST_OBJECTS + 1)
    else:
        listed = s3.find_object(client, bucket, key)
    # An address is only good in the bucket's own region.
    region = listed["region"] or client.meta.region_name
    if host_endpoint or region != client.meta.region_name:
        client = connect(s3.settings(signed, region, host_endpoint))
    objects = listed["objects"]
    if len(objects) > MOST_OBJECTS:
        raise TrainiumError(
            f"{source} has more than {MOST_OBJECTS} objects; pack them into archives, or take a part of them"
        )
    files = [
        {
            "path": file_path(item["Key"][len(prefix) :] if prefix == key else key.rpartition("/")[2]),
            "url": wrapped(s3.object_url(client, bucket, item["Key"], expires)),
            "size": int(item["Size"]),
            "tag": item.get("ETag", ""),
        }
        for item in objects
        # Consoles make empty objects to show a folder.
        if not item["Key"].endswith("/")
    ]
    if not files:
        raise TrainiumError(f"There is nothing at {source}; check the source, a prefix ends with a slash")
    # ETags of Express buckets are no MD5.
    md5_tags = not bucket.endswith("--x-s3")
    return {"files": files, "size": sum(file["size"] for file in files), "md5_tags": md5_tags}
