-- The oldest timestamp of a kind's records, and how many are before a time: from the index of kinds alone, no letter
-- is looked at. Reads only.
SELECT min(ifnull(stamp, time)), count(*) FILTER (WHERE ifnull(stamp, time) < ?2)
FROM letters INDEXED BY letters_kind WHERE kind = ?1
