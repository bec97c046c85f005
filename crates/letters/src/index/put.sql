-- A letter; one that is there already is left as it is. Whoever feeds holds the write lock for a few thousand of them.
INSERT OR IGNORE INTO letters (
    id, kind, time, message, flags, partition, offset, size, attempts, replays, hash, key, lane_hash, lane, leader, filed, stamp
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
