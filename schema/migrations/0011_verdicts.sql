CREATE TABLE "due_verdicts" (
	"run_id" uuid NOT NULL,
	"number" integer NOT NULL,
	"attempt" integer NOT NULL,
	"organization_id" uuid NOT NULL,
	"response_id" text NOT NULL,
	"calls" integer DEFAULT 0 NOT NULL,
	"fault" text,
	"cost" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	"published_at" timestamp with time zone,
	CONSTRAINT "due_verdicts_run_id_number_pk" PRIMARY KEY("run_id","number")
);
--> statement-breakpoint
ALTER TABLE "run_verdicts" ADD COLUMN "cost" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "due_verdicts" ADD CONSTRAINT "due_verdicts_run_id_runs_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "due_verdicts_due" ON "due_verdicts" USING btree ("due_at");