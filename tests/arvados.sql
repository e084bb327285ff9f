-- services/api/db/structure.sql of Arvados: the table `logs` with its sequence, and the columns that the bridge reads of
-- other tables, with some that it must not read. `objects` has those of all kinds.
CREATE TABLE logs (
    id bigint NOT NULL, uuid character varying(255), owner_uuid character varying(255),
    modified_by_client_uuid character varying(255), modified_by_user_uuid character varying(255),
    object_uuid character varying(255), event_at timestamp without time zone, event_type character varying(255),
    summary text, properties text, created_at timestamp without time zone NOT NULL,
    updated_at timestamp without time zone NOT NULL, modified_at timestamp without time zone,
    object_owner_uuid character varying(255)
);
CREATE SEQUENCE logs_id_seq OWNED BY logs.id;
ALTER TABLE logs ALTER COLUMN id SET DEFAULT nextval('logs_id_seq');
ALTER TABLE logs ADD CONSTRAINT logs_pkey PRIMARY KEY (id);
CREATE TABLE objects (
    id bigserial PRIMARY KEY, uuid varchar(255) UNIQUE, owner_uuid varchar(255),
    created_at timestamp without time zone, modified_at timestamp without time zone
);
CREATE TABLE collections (
    LIKE objects INCLUDING ALL, name varchar(255), is_trashed boolean, trash_at timestamp without time zone,
    delete_at timestamp without time zone, portable_data_hash varchar(255), version integer, manifest_text text
);
CREATE TABLE containers (
    LIKE objects INCLUDING ALL, state varchar(255), priority bigint, exit_code integer, progress double precision,
    cost double precision, started_at timestamp without time zone, finished_at timestamp without time zone,
    output varchar(255), log varchar(255), locked_by_uuid varchar(255), runtime_token text
);
CREATE TABLE container_requests (
    LIKE objects INCLUDING ALL, name varchar(255), state varchar(255), priority integer,
    container_uuid varchar(255), requesting_container_uuid varchar(255), output_uuid varchar(255),
    log_uuid varchar(255), runtime_token text
);
CREATE TABLE groups (
    LIKE objects INCLUDING ALL, name varchar(255), is_trashed boolean, trash_at timestamp without time zone,
    delete_at timestamp without time zone, group_class varchar(255), frozen_by_uuid varchar
);
CREATE TABLE links (
    LIKE objects INCLUDING ALL, name varchar(255), link_class varchar(255), tail_uuid varchar(255),
    head_uuid varchar(255)
);
CREATE TABLE users (LIKE objects INCLUDING ALL, is_admin boolean, is_active boolean, prefs text);
CREATE TABLE workflows (LIKE objects INCLUDING ALL, name varchar(255), definition text);
CREATE TABLE materialized_permissions (
    user_uuid varchar(27), target_uuid varchar(27), perm_level integer, traverse_owned boolean,
    PRIMARY KEY (user_uuid, target_uuid)
);
CREATE TABLE trashed_groups (group_uuid varchar, trash_at timestamp without time zone);
