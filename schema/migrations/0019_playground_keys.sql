ALTER TABLE "api_keys" ADD COLUMN "session_id" text;--> statement-breakpoint
CREATE INDEX "api_keys_session" ON "api_keys" USING btree ("session_id","expires_at") WHERE session_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "api_keys_playground_expiry" ON "api_keys" USING btree ("expires_at") WHERE session_id IS NOT NULL;--> statement-breakpoint
DROP INDEX "grants_model";--> statement-breakpoint
CREATE INDEX "grants_model" ON "grants" USING btree ("organization_id","model_id");