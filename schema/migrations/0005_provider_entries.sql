ALTER TABLE "providers" ADD COLUMN "organization_id" uuid;--> statement-breakpoint
ALTER TABLE "providers" ADD COLUMN "allowed_members" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "providers" ADD CONSTRAINT "providers_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;