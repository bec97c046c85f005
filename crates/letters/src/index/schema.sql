-- The index of letters. It is a cache of what lies in Kafka: another version of this is a reason to build it anew.

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Letter topics. `mark` is Kafka's id of the topic: one made anew has another.
CREATE TABLE topics (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, mark TEXT, compacted INTEGER NOT NULL DEFAULT 0
);

-- Their partitions: what is below `first` is gone from Kafka, what is below `next` has been read.
CREATE TABLE places (
    id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, partition INTEGER NOT NULL,
    first INTEGER NOT NULL, next INTEGER NOT NULL, UNIQUE (topic, partition)
);

-- Failure groups. `keys` is how many different keys their letters have.
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, fingerprint INTEGER NOT NULL UNIQUE, source TEXT NOT NULL, consumer TEXT,
    error_type TEXT, message TEXT NOT NULL, keys INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE keys (failure INTEGER NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (failure, hash)) WITHOUT ROWID;

-- What many letters have in common. A question is first answered for kinds, of which there are few. Kinds that
-- differ in their attempts alone have one base, which is one of them.
CREATE TABLE kinds (
    id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, failure INTEGER NOT NULL, class INTEGER NOT NULL,
    reason INTEGER NOT NULL, dialect INTEGER NOT NULL, attempts INTEGER NOT NULL, state INTEGER NOT NULL,
    base INTEGER NOT NULL, count INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic, failure, class, reason, dialect, attempts, state)
);

-- Letters of the kinds of each base, by the hour.
CREATE TABLE hours (
    base INTEGER NOT NULL, hour INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (base, hour)
) WITHOUT ROWID;

-- What errors said, each text about once; and its words.
CREATE TABLE messages (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(
    text, content='', contentless_delete=1, detail=none, tokenize="unicode61 tokenchars '_'"
);
-- Words of many letters at a time, and parts of the index merged many at a time: each word is written less often.
INSERT INTO words (words, rank) VALUES ('hashsize', 4194304);
INSERT INTO words (words, rank) VALUES ('automerge', 16);

-- A letter. Its id is its place and its offset there. `hash` is of the key, `filed` of the key it is filed under
-- where that is another, `lane_hash` of a lane that is not the key. `stamp` is the timestamp of the record, where that is
-- not `time`: what Kafka goes by when it deletes.
CREATE TABLE letters (
    id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, time INTEGER NOT NULL, message INTEGER, flags INTEGER NOT NULL,
    partition INTEGER, offset INTEGER, size INTEGER NOT NULL, attempts INTEGER, replays INTEGER,
    hash INTEGER, key BLOB, lane_hash INTEGER, lane BLOB, leader INTEGER, filed INTEGER,
    stamp INTEGER
);
-- With the id, since lists go by time and id; with the stamp, so that retention is told from it alone.
CREATE INDEX letters_kind ON letters (kind, time, id, stamp);
CREATE INDEX letters_time ON letters (time);
CREATE INDEX letters_message ON letters (message);
CREATE INDEX letters_hash ON letters (hash) WHERE hash IS NOT NULL;
CREATE INDEX letters_lane ON letters (lane_hash) WHERE lane_hash IS NOT NULL;
CREATE INDEX letters_leader ON letters (leader) WHERE leader IS NOT NULL;
CREATE INDEX letters_filed ON letters (filed) WHERE filed IS NOT NULL;

-- Letters of compacted topics that a later record of the same key will have Kafka drop.
CREATE TABLE superseded (id INTEGER PRIMARY KEY);

-- What is said of letters elsewhere. Letters of which nothing is said are open.
CREATE TABLE jobs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE states (
    id INTEGER PRIMARY KEY, state INTEGER NOT NULL, job INTEGER, outcome INTEGER, at INTEGER
);
-- When letters of failure groups were dealt with last: resolved, deleted, or sent back and handled. It stays when the
-- letters are gone.
CREATE TABLE dealings (fingerprint INTEGER PRIMARY KEY, at INTEGER NOT NULL);
-- What is said of failure groups.
CREATE TABLE group_states (
    fingerprint INTEGER PRIMARY KEY, state TEXT NOT NULL, by TEXT NOT NULL, at INTEGER NOT NULL, why TEXT
);
