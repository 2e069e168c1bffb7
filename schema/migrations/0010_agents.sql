CREATE TABLE "agent_triggers" (
	"agent_id" uuid NOT NULL,
	"name" text NOT NULL,
	"organization_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"cron" text,
	"inputs" jsonb NOT NULL,
	"sealed_secret" text,
	"published_at" timestamp with time zone,
	"removed_at" timestamp with time zone,
	CONSTRAINT "agent_triggers_agent_id_name_pk" PRIMARY KEY("agent_id","name")
);
--> statement-breakpoint
CREATE TABLE "agent_versions" (
	"agent_id" uuid NOT NULL,
	"version" integer NOT NULL,
	"organization_id" uuid NOT NULL,
	"definition" jsonb NOT NULL,
	"author" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "agent_versions_agent_id_version_pk" PRIMARY KEY("agent_id","version")
);
--> statement-breakpoint
CREATE TABLE "agents" (
	"id" uuid PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"created_by" uuid NOT NULL,
	"name" text NOT NULL,
	"description" text NOT NULL,
	"metadata" jsonb NOT NULL,
	"visibility" text NOT NULL,
	"group_ids" jsonb NOT NULL,
	"version" integer NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"deleted_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "run_outbox" (
	"run_id" uuid NOT NULL,
	"rev" integer NOT NULL,
	"organization_id" uuid NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	"published_at" timestamp with time zone,
	CONSTRAINT "run_outbox_run_id_rev_pk" PRIMARY KEY("run_id","rev")
);
--> statement-breakpoint
CREATE TABLE "run_requests" (
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"digest" text NOT NULL,
	"content" text NOT NULL,
	"run_id" uuid NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "run_requests_organization_id_user_id_digest_pk" PRIMARY KEY("organization_id","user_id","digest")
);
--> statement-breakpoint
CREATE TABLE "run_steps" (
	"run_id" uuid NOT NULL,
	"number" integer NOT NULL,
	"attempt" integer NOT NULL,
	"organization_id" uuid NOT NULL,
	"status" text NOT NULL,
	"response_id" text NOT NULL,
	"output" text,
	"error" jsonb,
	"had_effects" boolean DEFAULT false NOT NULL,
	"cost" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"deadline_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "run_steps_run_id_number_attempt_pk" PRIMARY KEY("run_id","number","attempt")
);
--> statement-breakpoint
CREATE TABLE "run_verdicts" (
	"run_id" uuid NOT NULL,
	"number" integer NOT NULL,
	"attempt" integer NOT NULL,
	"organization_id" uuid NOT NULL,
	"result" text NOT NULL,
	"explanation" text,
	"details" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "run_verdicts_run_id_number_pk" PRIMARY KEY("run_id","number")
);
--> statement-breakpoint
CREATE TABLE "runs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"agent_id" uuid NOT NULL,
	"agent_version" integer NOT NULL,
	"conversation_id" text NOT NULL,
	"origin" text NOT NULL,
	"restarted_from" uuid,
	"sealed_inputs" text NOT NULL,
	"status" text NOT NULL,
	"rev" integer NOT NULL,
	"step" integer NOT NULL,
	"attempt" integer NOT NULL,
	"result" text,
	"error" jsonb,
	"created_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	"deadline_at" timestamp with time zone NOT NULL,
	"leased_until" timestamp with time zone,
	"lease_token" text
);
--> statement-breakpoint
ALTER TABLE "agent_triggers" ADD CONSTRAINT "agent_triggers_agent_id_agents_id_fk" FOREIGN KEY ("agent_id") REFERENCES "public"."agents"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "agent_versions" ADD CONSTRAINT "agent_versions_agent_id_agents_id_fk" FOREIGN KEY ("agent_id") REFERENCES "public"."agents"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "agents" ADD CONSTRAINT "agents_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "agents" ADD CONSTRAINT "agents_created_by_users_id_fk" FOREIGN KEY ("created_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "run_outbox" ADD CONSTRAINT "run_outbox_run_id_runs_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "run_steps" ADD CONSTRAINT "run_steps_run_id_runs_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "run_verdicts" ADD CONSTRAINT "run_verdicts_run_id_runs_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_agent_id_agents_id_fk" FOREIGN KEY ("agent_id") REFERENCES "public"."agents"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "agent_triggers_unpublished" ON "agent_triggers" USING btree ("agent_id") WHERE "agent_triggers"."published_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "agents_organization_name" ON "agents" USING btree ("organization_id","name") WHERE "agents"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "agents_organization" ON "agents" USING btree ("organization_id","created_at");--> statement-breakpoint
CREATE INDEX "run_outbox_due" ON "run_outbox" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "run_requests_expiry" ON "run_requests" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "runs_agent" ON "runs" USING btree ("agent_id","created_at");--> statement-breakpoint
CREATE INDEX "runs_owner" ON "runs" USING btree ("organization_id","user_id","created_at");--> statement-breakpoint
CREATE INDEX "runs_ended" ON "runs" USING btree ("ended_at");