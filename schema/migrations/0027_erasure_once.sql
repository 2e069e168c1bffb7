-- Simultaneous requests could begin several erasures of a person. The one that began first goes on; the others would do the same.
DELETE FROM "erasures" AS later USING "erasures" AS earlier
WHERE later.finished_at IS NULL AND earlier.finished_at IS NULL
  AND later.organization_id = earlier.organization_id AND later.user_id = earlier.user_id
  AND (later.created_at, later.id) > (earlier.created_at, earlier.id);--> statement-breakpoint
CREATE UNIQUE INDEX "erasures_open" ON "erasures" USING btree ("organization_id","user_id") WHERE finished_at IS NULL;
