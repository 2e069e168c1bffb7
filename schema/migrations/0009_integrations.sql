CREATE TABLE "connect_sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"connection_id" text NOT NULL,
	"user_id" uuid NOT NULL,
	"sealed_state" text,
	"status" text NOT NULL,
	"failure" text,
	"expires_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "connection_preferences" (
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"integration_id" uuid NOT NULL,
	"connection_id" text NOT NULL,
	"is_default" boolean DEFAULT false NOT NULL,
	"set_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "connection_preferences_organization_id_user_id_integration_id_connection_id_pk" PRIMARY KEY("organization_id","user_id","integration_id","connection_id")
);
--> statement-breakpoint
CREATE TABLE "connection_shares" (
	"organization_id" uuid NOT NULL,
	"connection_id" text NOT NULL,
	"group_id" uuid NOT NULL,
	"permission" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "connection_shares_connection_id_group_id_pk" PRIMARY KEY("connection_id","group_id")
);
--> statement-breakpoint
CREATE TABLE "connections" (
	"id" text PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"integration_id" uuid NOT NULL,
	"owner_user_id" uuid,
	"display_name" text NOT NULL,
	"broker" text NOT NULL,
	"upstream_connection_id" text NOT NULL,
	"sealed_credential" text,
	"vault_key_id" text,
	"credential_version" integer DEFAULT 1 NOT NULL,
	"hint" text,
	"status" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "integration_grants" (
	"id" uuid PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"subject_type" text NOT NULL,
	"subject_id" text NOT NULL,
	"integration" text NOT NULL,
	"tools" jsonb,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "integrations" (
	"id" uuid PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"slug" text NOT NULL,
	"display_name" text NOT NULL,
	"description" text DEFAULT '' NOT NULL,
	"kind" text NOT NULL,
	"url" text NOT NULL,
	"document" jsonb,
	"authorization" jsonb NOT NULL,
	"sealed_client_secret" text,
	"approval" text DEFAULT 'first' NOT NULL,
	"price" integer DEFAULT 0 NOT NULL,
	"disabled_tools" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"disabled_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"deleted_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "tool_catalogues" (
	"integration_id" uuid NOT NULL,
	"connection_id" text DEFAULT '' NOT NULL,
	"organization_id" uuid NOT NULL,
	"tools" jsonb,
	"protocol" jsonb,
	"refreshed_at" timestamp with time zone,
	"stale_since" timestamp with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	"error" text,
	"next_refresh_at" timestamp with time zone DEFAULT now() NOT NULL,
	"leased_until" timestamp with time zone,
	CONSTRAINT "tool_catalogues_integration_id_connection_id_pk" PRIMARY KEY("integration_id","connection_id")
);
--> statement-breakpoint
CREATE TABLE "tool_definitions" (
	"integration_id" uuid NOT NULL,
	"organization_id" uuid NOT NULL,
	"name" text NOT NULL,
	"hash" text NOT NULL,
	"definition" jsonb NOT NULL,
	"binding" jsonb,
	"state" text NOT NULL,
	"decided_by" text,
	"decided_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "tool_definitions_integration_id_name_hash_pk" PRIMARY KEY("integration_id","name","hash")
);
--> statement-breakpoint
ALTER TABLE "connect_sessions" ADD CONSTRAINT "connect_sessions_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_preferences" ADD CONSTRAINT "connection_preferences_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_preferences" ADD CONSTRAINT "connection_preferences_integration_id_integrations_id_fk" FOREIGN KEY ("integration_id") REFERENCES "public"."integrations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_preferences" ADD CONSTRAINT "connection_preferences_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_shares" ADD CONSTRAINT "connection_shares_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_shares" ADD CONSTRAINT "connection_shares_group_id_groups_id_fk" FOREIGN KEY ("group_id") REFERENCES "public"."groups"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_integration_id_integrations_id_fk" FOREIGN KEY ("integration_id") REFERENCES "public"."integrations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connections" ADD CONSTRAINT "connections_owner_user_id_users_id_fk" FOREIGN KEY ("owner_user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "integration_grants" ADD CONSTRAINT "integration_grants_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "integrations" ADD CONSTRAINT "integrations_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tool_catalogues" ADD CONSTRAINT "tool_catalogues_integration_id_integrations_id_fk" FOREIGN KEY ("integration_id") REFERENCES "public"."integrations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tool_definitions" ADD CONSTRAINT "tool_definitions_integration_id_integrations_id_fk" FOREIGN KEY ("integration_id") REFERENCES "public"."integrations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "connections_organization" ON "connections" USING btree ("organization_id","integration_id");--> statement-breakpoint
CREATE INDEX "connections_owner" ON "connections" USING btree ("owner_user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "integration_grants_unique" ON "integration_grants" USING btree ("organization_id","subject_type","subject_id","integration");--> statement-breakpoint
CREATE UNIQUE INDEX "integrations_organization_slug" ON "integrations" USING btree ("organization_id","slug") WHERE "integrations"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "tool_catalogues_due" ON "tool_catalogues" USING btree ("next_refresh_at");--> statement-breakpoint
CREATE INDEX "tool_definitions_organization" ON "tool_definitions" USING btree ("organization_id","integration_id");