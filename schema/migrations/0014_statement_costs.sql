CREATE INDEX "memberships_created" ON "memberships" USING btree ("organization_id","created_at");--> statement-breakpoint
CREATE INDEX "organizations_created" ON "organizations" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "content_erasures_created" ON "content_erasures" USING btree ("created_at","content_key");--> statement-breakpoint
CREATE INDEX "connect_sessions_connection" ON "connect_sessions" USING btree ("connection_id","created_at");--> statement-breakpoint
CREATE INDEX "connection_preferences_connection" ON "connection_preferences" USING btree ("connection_id");--> statement-breakpoint
CREATE INDEX "connection_shares_group" ON "connection_shares" USING btree ("group_id");--> statement-breakpoint
CREATE INDEX "connections_created" ON "connections" USING btree ("organization_id","created_at");--> statement-breakpoint
CREATE INDEX "tool_catalogues_organization" ON "tool_catalogues" USING btree ("organization_id");--> statement-breakpoint
CREATE INDEX "runs_agent_status" ON "runs" USING btree ("agent_id","status","created_at");--> statement-breakpoint
CREATE INDEX "runs_agent_user" ON "runs" USING btree ("agent_id","user_id","created_at");--> statement-breakpoint
DROP INDEX "connections_owner";--> statement-breakpoint
CREATE INDEX "connections_owner" ON "connections" USING btree ("organization_id","owner_user_id");--> statement-breakpoint
DROP INDEX "runs_owner";