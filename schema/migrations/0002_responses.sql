CREATE TABLE "conversation_items" (
	"conversation_id" text NOT NULL,
	"position" integer NOT NULL,
	"item_id" text NOT NULL,
	"response_id" text NOT NULL,
	CONSTRAINT "conversation_items_conversation_id_position_pk" PRIMARY KEY("conversation_id","position"),
	CONSTRAINT "conversation_items_item" UNIQUE("item_id","conversation_id")
);
--> statement-breakpoint
CREATE TABLE "conversations" (
	"id" text PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"writer" text,
	"head_response_id" text,
	"next_position" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "response_item_uses" (
	"response_id" text NOT NULL,
	"direction" text NOT NULL,
	"position" integer NOT NULL,
	"item_id" text NOT NULL,
	CONSTRAINT "response_item_uses_response_id_direction_position_pk" PRIMARY KEY("response_id","direction","position"),
	CONSTRAINT "response_item_uses_item" UNIQUE("item_id","response_id")
);
--> statement-breakpoint
CREATE TABLE "response_items" (
	"id" text PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"response_id" text NOT NULL,
	"type" text NOT NULL,
	"role" text,
	"call_id" text,
	"body" text,
	"content_key" text,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "responses" (
	"id" text PRIMARY KEY NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"key_id" text NOT NULL,
	"conversation_id" text,
	"previous_response_id" text,
	"model" text NOT NULL,
	"status" text NOT NULL,
	"body" text,
	"context_position" integer,
	"last_sequence" integer DEFAULT 0 NOT NULL,
	"policy_version" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"completed_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "conversation_items" ADD CONSTRAINT "conversation_items_conversation_id_conversations_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "conversation_items" ADD CONSTRAINT "conversation_items_item_id_response_items_id_fk" FOREIGN KEY ("item_id") REFERENCES "public"."response_items"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "response_item_uses" ADD CONSTRAINT "response_item_uses_response_id_responses_id_fk" FOREIGN KEY ("response_id") REFERENCES "public"."responses"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "response_item_uses" ADD CONSTRAINT "response_item_uses_item_id_response_items_id_fk" FOREIGN KEY ("item_id") REFERENCES "public"."response_items"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "response_items" ADD CONSTRAINT "response_items_response_id_responses_id_fk" FOREIGN KEY ("response_id") REFERENCES "public"."responses"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "responses" ADD CONSTRAINT "responses_conversation_id_conversations_id_fk" FOREIGN KEY ("conversation_id") REFERENCES "public"."conversations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "response_items_response" ON "response_items" USING btree ("response_id");