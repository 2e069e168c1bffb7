CREATE TABLE "erasures" (
	"id" text PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"requested_by" text NOT NULL,
	"step" text NOT NULL,
	"reached" jsonb,
	"counts" jsonb NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"finished_at" timestamp with time zone,
	"failure" text,
	"leased_until" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "prunings" (
	"organization_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"shard" integer NOT NULL,
	"statement" text NOT NULL,
	"pepper_id" text NOT NULL,
	"mac" text NOT NULL,
	CONSTRAINT "prunings_organization_id_kind_shard_pk" PRIMARY KEY("organization_id","kind","shard")
);
--> statement-breakpoint
DROP INDEX "runs_ended";--> statement-breakpoint
ALTER TABLE "organizations" ADD COLUMN "retention" jsonb;--> statement-breakpoint
ALTER TABLE "organizations" ADD COLUMN "retention_swept_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "erasures_user" ON "erasures" USING btree ("organization_id","user_id","created_at");--> statement-breakpoint
CREATE INDEX "erasures_due" ON "erasures" USING btree ("created_at") WHERE finished_at IS NULL;--> statement-breakpoint
CREATE INDEX "organizations_retention" ON "organizations" USING btree ("retention");--> statement-breakpoint
CREATE INDEX "organizations_swept" ON "organizations" USING btree ("retention_swept_at" NULLS FIRST,"id");--> statement-breakpoint
CREATE INDEX "rejected_calls_minute" ON "rejected_calls" USING btree ("minute");--> statement-breakpoint
CREATE INDEX "conversations_created" ON "conversations" USING btree ((organization_id::text),"created_at","id");--> statement-breakpoint
CREATE INDEX "responses_created" ON "responses" USING btree ((organization_id::text),"created_at","id");--> statement-breakpoint
CREATE INDEX "responses_conversation" ON "responses" USING btree ("conversation_id") WHERE "responses"."conversation_id" is not null;--> statement-breakpoint
CREATE INDEX "connect_sessions_created" ON "connect_sessions" USING btree ((organization_id::text),"created_at");--> statement-breakpoint
CREATE INDEX "connect_sessions_user" ON "connect_sessions" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "runs_ended" ON "runs" USING btree ((organization_id::text),"ended_at");