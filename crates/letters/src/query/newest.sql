-- Letters of a time, the newest first, beyond a place in that order. Read as far as need be.
SELECT
    id, kind, time, message, flags, partition, offset, size, attempts, replays, hash, key, lane_hash, lane,
    leader
FROM letters INDEXED BY letters_time WHERE time BETWEEN ?1 AND ?2 AND (time < ?3 OR id < ?4)
ORDER BY time DESC, id DESC
