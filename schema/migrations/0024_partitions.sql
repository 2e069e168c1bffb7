-- Written by hand: drizzle-kit does not know partitions, and its snapshot has the tables as they look to statements.
--
-- audit_records and usage_events become partitioned by month of "at" in UTC. The key is an expression, so that a condition on it selects
-- partitions without offering the planner the index of times: with a plain bound of "at", it reads by that index, where it has no
-- statistics, what one look-up by the primary key finds. A month whose records no organization has to keep is
-- dropped as a whole, where deletions row by row would leave as many dead rows.
--
-- The primary keys are those of the partitions, not of the partitioned tables: there they would have to include "at", and two
-- records with one place in a chain would not collide. A record that is written again has the same "at" and so reaches the same
-- partition. That a place of a chain is taken in another month is checked by the statement that writes records.
--
-- Rows that exist stay where they are: their table becomes the partition of all time up to the end of the last month that it has
-- rows of. Nothing is copied.
ALTER TABLE "audit_records" RENAME TO "audit_records_earlier";--> statement-breakpoint
ALTER TABLE "audit_records_earlier" RENAME CONSTRAINT "audit_records_organization_id_shard_sequence_pk" TO "audit_records_earlier_pk";--> statement-breakpoint
ALTER INDEX "audit_records_id" RENAME TO "audit_records_earlier_id";--> statement-breakpoint
ALTER INDEX "audit_records_at" RENAME TO "audit_records_earlier_at";--> statement-breakpoint
CREATE TABLE "audit_records" (LIKE "audit_records_earlier" INCLUDING DEFAULTS) PARTITION BY RANGE (("at" AT TIME ZONE 'UTC'));--> statement-breakpoint
CREATE INDEX "audit_records_id" ON "audit_records" USING btree ("id");--> statement-breakpoint
CREATE INDEX "audit_records_at" ON "audit_records" USING btree ("organization_id","at");--> statement-breakpoint
CREATE TABLE "audit_records_default" PARTITION OF "audit_records" (CONSTRAINT "audit_records_default_pk" PRIMARY KEY ("organization_id","shard","sequence")) DEFAULT;--> statement-breakpoint
ALTER TABLE "usage_events" RENAME TO "usage_events_earlier";--> statement-breakpoint
ALTER TABLE "usage_events_earlier" RENAME CONSTRAINT "usage_events_pkey" TO "usage_events_earlier_pk";--> statement-breakpoint
ALTER INDEX "usage_events_at" RENAME TO "usage_events_earlier_at";--> statement-breakpoint
CREATE TABLE "usage_events" (LIKE "usage_events_earlier" INCLUDING DEFAULTS) PARTITION BY RANGE (("at" AT TIME ZONE 'UTC'));--> statement-breakpoint
CREATE INDEX "usage_events_at" ON "usage_events" USING btree ("organization_id","at","call_id");--> statement-breakpoint
CREATE TABLE "usage_events_default" PARTITION OF "usage_events" (CONSTRAINT "usage_events_default_pk" PRIMARY KEY ("call_id")) DEFAULT;--> statement-breakpoint
DO $$
DECLARE
  parent text;
  is_filled boolean;
  ends timestamp;
BEGIN
  FOREACH parent IN ARRAY ARRAY['audit_records', 'usage_events'] LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %I)', parent || '_earlier') INTO is_filled;
    IF is_filled THEN
      EXECUTE format('SELECT greatest(max(at) FILTER (WHERE isfinite(at)), now()) AT TIME ZONE ''UTC'' FROM %I', parent || '_earlier') INTO ends;
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)', parent, parent || '_earlier',
        date_trunc('month', ends) + interval '1 month');
    ELSE
      EXECUTE format('DROP TABLE %I', parent || '_earlier');
    END IF;
  END LOOP;
END $$;--> statement-breakpoint
-- The partitions of a table, but for the default one, with their bounds in UTC; "begins" is null for the one of earlier rows.
CREATE FUNCTION "month_partitions"(parent text) RETURNS TABLE (name text, begins timestamp, ends timestamp) LANGUAGE sql STABLE AS $$
  SELECT relname::text, substring(bound FROM 'FROM \(''([^'']+)''\)')::timestamp, substring(bound FROM 'TO \(''([^'']+)''\)')::timestamp
  FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid CROSS JOIN pg_get_expr(relpartbound, inhrelid) AS bound
  WHERE inhparent = to_regclass(parent) AND bound <> 'DEFAULT'
  ORDER BY 3
$$;--> statement-breakpoint
-- Makes the partition of a month, if it has none and no rows of it are in the default partition, which then keeps all of them.
-- Statements on the table wait for it, so it gives up where it would wait itself.
CREATE FUNCTION "add_month_partition"(parent text, month timestamp) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  partition text := parent || to_char(month, '"_"YYYY"_"MM');
  next_month timestamp := month + interval '1 month';
  is_taken boolean;
BEGIN
  SELECT EXISTS (SELECT FROM month_partitions(parent) AS there WHERE coalesce(there.begins, '-infinity') < next_month AND there.ends > month)
    INTO is_taken;
  IF is_taken THEN RETURN false; END IF;
  EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE at AT TIME ZONE ''UTC'' >= %L AND at AT TIME ZONE ''UTC'' < %L)',
    parent || '_default', month, next_month) INTO is_taken;
  IF is_taken THEN RETURN false; END IF;
  PERFORM set_config('lock_timeout', '3s', true);
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS, CONSTRAINT %I PRIMARY KEY (%s))', partition, parent, partition || '_pk',
    CASE parent WHEN 'audit_records' THEN 'organization_id, shard, sequence' ELSE 'call_id' END);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, partition, month, next_month);
  RETURN true;
END $$;--> statement-breakpoint
SELECT "add_month_partition"(parent, date_trunc('month', now() AT TIME ZONE 'UTC') + ahead * interval '1 month')
FROM unnest(ARRAY['audit_records', 'usage_events']) AS parent CROSS JOIN generate_series(0, 2) AS ahead;
