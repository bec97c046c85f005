-- One letter.
SELECT
    id, kind, time, message, flags, partition, offset, size, attempts, replays, hash, key, lane_hash, lane,
    leader
FROM letters WHERE id = ?1
