CREATE TABLE "approval_claims" (
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"id" text NOT NULL,
	"response_id" text NOT NULL,
	"call_id" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "approval_claims_organization_id_user_id_id_pk" PRIMARY KEY("organization_id","user_id","id")
);
