-- So many more letters of the kinds of a base in an hour, or fewer. Within the transaction that adds or forgets the letters.
INSERT INTO hours (base, hour, count) VALUES (?1, ?2, ?3)
ON CONFLICT (base, hour) DO UPDATE SET count = count + excluded.count
