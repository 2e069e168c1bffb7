DROP INDEX "sessions_member";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "replaced_by" text;--> statement-breakpoint
CREATE INDEX "sessions_open" ON "sessions" USING btree ("organization_id","user_id","expires_at") WHERE ended_at IS NULL;