"""The containers of an Arvados cluster whose logs can be read, from PostgreSQL."""

from collections.abc import Sequence

from signalbox.clients.bridge.postgres import PostgresReader, translated_errors
from signalbox.live.bridge.log_selection import ListedContainer

# A running container changes at least each half hour, when its log is saved; the table has an index by this time.
LISTED = """
    SELECT uuid, state <> 'Running',
           (SELECT uuid FROM container_requests WHERE container_uuid = containers.uuid ORDER BY id LIMIT 1),
           ARRAY(SELECT DISTINCT owner_uuid FROM container_requests
                 WHERE container_uuid = containers.uuid AND state <> 'Uncommitted' ORDER BY owner_uuid LIMIT 20)
    FROM containers
    WHERE (uuid = ANY(%s) OR modified_at > (now() AT TIME ZONE 'UTC') - interval '35 minutes')
      AND (state = 'Running' OR uuid = ANY(%s)
           OR (state IN ('Complete', 'Cancelled') AND finished_at > (now() AT TIME ZONE 'UTC') - interval '10 minutes'))
"""


class PostgresContainers(PostgresReader):
    """The table of containers."""

    def containers(self, known: Sequence[str]) -> Sequence[ListedContainer]:
        """Return the containers that run or have ended in the last ten minutes, and the `known` ones.

        A container that no request names any more, after a retry, has no owners.
        """
        uuids = list(known)
        with translated_errors():
            rows = self.connection.execute(LISTED.encode(), [uuids, uuids]).fetchall()
        return [ListedContainer(uuid, request or "", tuple(owners), is_over) for uuid, is_over, request, owners in rows]
