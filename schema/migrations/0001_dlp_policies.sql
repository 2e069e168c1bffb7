CREATE TABLE "dlp_policies" (
	"id" uuid PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"name" text NOT NULL,
	"enabled" boolean NOT NULL,
	"version" integer NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"deleted_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "dlp_policy_versions" (
	"policy_id" uuid NOT NULL,
	"version" integer NOT NULL,
	"organization_id" uuid NOT NULL,
	"name" text NOT NULL,
	"enabled" boolean NOT NULL,
	"body" jsonb NOT NULL,
	"author" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "dlp_policy_versions_policy_id_version_pk" PRIMARY KEY("policy_id","version")
);
--> statement-breakpoint
ALTER TABLE "dlp_policies" ADD CONSTRAINT "dlp_policies_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "dlp_policy_versions" ADD CONSTRAINT "dlp_policy_versions_policy_id_dlp_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."dlp_policies"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "dlp_policy_versions" ADD CONSTRAINT "dlp_policy_versions_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "dlp_policies_organization_name" ON "dlp_policies" USING btree ("organization_id","name") WHERE "dlp_policies"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "dlp_policies_organization" ON "dlp_policies" USING btree ("organization_id","created_at");