CREATE TABLE "passkeys" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"name" text NOT NULL,
	"credential_id" text NOT NULL,
	"public_key" text NOT NULL,
	"counter" bigint NOT NULL,
	"transports" text[] NOT NULL,
	"last_used_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "passkeys_credential_id_unique" UNIQUE("credential_id")
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"digest" text NOT NULL,
	"pepper_id" text NOT NULL,
	"method" text NOT NULL,
	"ceremony_id" text NOT NULL,
	"user_agent" text NOT NULL,
	"signed_in_at" timestamp with time zone NOT NULL,
	"last_seen_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "sessions_digest_unique" UNIQUE("digest"),
	CONSTRAINT "sessions_ceremony_id_unique" UNIQUE("ceremony_id")
);
--> statement-breakpoint
CREATE TABLE "setup_links" (
	"id" text PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"digest" text NOT NULL,
	"pepper_id" text NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "setup_links_digest_unique" UNIQUE("digest")
);
--> statement-breakpoint
ALTER TABLE "memberships" ADD COLUMN "last_signed_in_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "kind" text DEFAULT 'person' NOT NULL;--> statement-breakpoint
CREATE INDEX "passkeys_member" ON "passkeys" USING btree ("organization_id","user_id");--> statement-breakpoint
CREATE INDEX "sessions_member" ON "sessions" USING btree ("organization_id","user_id","signed_in_at");--> statement-breakpoint
CREATE INDEX "sessions_expiry" ON "sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "setup_links_member" ON "setup_links" USING btree ("organization_id","user_id");--> statement-breakpoint
CREATE INDEX "setup_links_expiry" ON "setup_links" USING btree ("expires_at");