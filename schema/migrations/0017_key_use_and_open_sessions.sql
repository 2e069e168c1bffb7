DROP INDEX "sessions_member";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "last_used_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "sessions_open" ON "sessions" USING btree ("organization_id","user_id","expires_at") WHERE ended_at IS NULL;