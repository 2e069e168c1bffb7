ALTER TABLE "organizations" ADD COLUMN "ledger_shards" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "credit_entries" ADD COLUMN "shard" integer DEFAULT 0 NOT NULL;