CREATE TABLE "calls" (
	"organization_id" uuid NOT NULL,
	"id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"request_id" text NOT NULL,
	"user_id" text,
	"key_id" text,
	"surface" text NOT NULL,
	"action" text NOT NULL,
	"model_id" text,
	"tool" text,
	"connection_id" text,
	"provider" text,
	"response_id" text,
	"run_id" text,
	"status" integer NOT NULL,
	"error_code" text,
	"outcome" text NOT NULL,
	"flags" text[],
	"detectors" text[],
	"duration_milliseconds" bigint NOT NULL,
	"first_event_milliseconds" bigint,
	"input_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"cost" bigint NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "calls_organization_id_id_pk" PRIMARY KEY("organization_id","id")
);
--> statement-breakpoint
-- Rows of the calls so far. A body that was tampered with, and is no record any more, gets none.
DO $$
DECLARE
	stored record;
	entry jsonb;
BEGIN
	FOR stored IN SELECT body FROM audit_records WHERE kind = 'call' LOOP
		BEGIN
			entry := stored.body::jsonb;
			INSERT INTO calls (organization_id, id, at, request_id, user_id, key_id, surface, action, model_id, tool, connection_id, provider,
				response_id, run_id, status, error_code, outcome, flags, detectors, duration_milliseconds, first_event_milliseconds,
				input_tokens, output_tokens, cost, count)
			VALUES ((entry->>'organizationId')::uuid, entry->>'id',
				timestamptz 'epoch' + (entry->>'at')::bigint * interval '1 millisecond', entry->>'requestId',
				entry->'actor'->>'userId', entry->'actor'->>'keyId', entry->>'surface', entry->>'action', entry->>'modelId',
				entry->>'tool', entry->>'connectionId', entry->>'provider', entry->>'responseId', entry->>'runId',
				(entry->>'status')::integer, entry->>'errorCode',
				CASE WHEN entry->>'errorCode' LIKE 'dlp\_%' THEN 'blocked' WHEN entry->>'status' = '499' THEN 'cancelled'
					WHEN (entry->>'status')::integer BETWEEN 400 AND 499 THEN 'refused'
					WHEN (entry->>'status')::integer BETWEEN 1 AND 399 AND entry->>'errorCode' IS NULL THEN 'ok' ELSE 'failed' END,
				(SELECT array_agg(name ORDER BY place) FROM jsonb_array_elements_text(entry->'flags') WITH ORDINALITY AS flag(name, place)),
				(SELECT array_agg(name ORDER BY name COLLATE "C") FROM jsonb_object_keys(entry->'dlp'->'findings') AS name),
				(entry->>'durationMilliseconds')::bigint, (entry->'timing'->>'firstEvent')::bigint,
				coalesce((entry->'usage'->>'input')::bigint, 0) + coalesce((entry->'usage'->>'cacheRead')::bigint, 0)
					+ coalesce((entry->'usage'->>'cacheWrite5Minutes')::bigint, 0) + coalesce((entry->'usage'->>'cacheWrite1Hour')::bigint, 0),
				coalesce((entry->'usage'->>'output')::bigint, 0), (entry->>'cost')::bigint, coalesce((entry->>'count')::bigint, 1))
			ON CONFLICT DO NOTHING;
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
	END LOOP;
END $$;--> statement-breakpoint
CREATE INDEX "calls_at" ON "calls" USING btree ("organization_id","at","id");--> statement-breakpoint
CREATE INDEX "calls_request" ON "calls" USING btree ("organization_id","request_id","at","id");--> statement-breakpoint
CREATE INDEX "calls_user" ON "calls" USING btree ("organization_id","user_id","at","id");--> statement-breakpoint
CREATE INDEX "calls_key" ON "calls" USING btree ("organization_id","key_id","at","id");--> statement-breakpoint
CREATE INDEX "calls_model" ON "calls" USING btree ("organization_id","model_id","at","id");--> statement-breakpoint
CREATE INDEX "calls_provider" ON "calls" USING btree ("organization_id","provider","at","id") WHERE "calls"."provider" is not null;--> statement-breakpoint
CREATE INDEX "calls_tool" ON "calls" USING btree ("organization_id","tool","at","id") WHERE "calls"."tool" is not null;--> statement-breakpoint
CREATE INDEX "calls_error" ON "calls" USING btree ("organization_id","error_code","at","id") WHERE "calls"."error_code" is not null;--> statement-breakpoint
CREATE INDEX "calls_response" ON "calls" USING btree ("organization_id","response_id","at","id") WHERE "calls"."response_id" is not null;--> statement-breakpoint
CREATE INDEX "calls_run" ON "calls" USING btree ("organization_id","run_id","at","id") WHERE "calls"."run_id" is not null;--> statement-breakpoint
CREATE INDEX "calls_outcome" ON "calls" USING btree ("organization_id","outcome","at","id") WHERE outcome <> 'ok';--> statement-breakpoint
CREATE INDEX "calls_flagged" ON "calls" USING btree ("organization_id","at","id") WHERE "calls"."flags" is not null;--> statement-breakpoint
CREATE INDEX "calls_found" ON "calls" USING btree ("organization_id","at","id") WHERE "calls"."detectors" is not null;