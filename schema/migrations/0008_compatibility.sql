ALTER TABLE "api_keys" ADD COLUMN "compatibility" text DEFAULT 'headgate' NOT NULL;--> statement-breakpoint
ALTER TABLE "responses" ADD COLUMN "compatibility" text DEFAULT 'headgate' NOT NULL;