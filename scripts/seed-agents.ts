import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm'
import { agents, agentVersions } from '../schema/agents.ts'
import type { ScriptDatabase } from './database.ts'
import { type DemoAgent, demoAgents } from './demo-agents.ts'
import { demoId, organizationId, userId } from './demo-organizations.ts'

/** Author of versions that no user has created. */
const AUTHOR = 'seed'

const agentId = ({ key }: DemoAgent): string => demoId(`agent acme ${key}`)

/**
 * Adds the demo agents to the first organization, which all of its users may run. Doing it again makes a next version of those
 * that changed, such as by another model, unless a person has changed or deleted them.
 * @param model of every step. @returns the agents that are there, by name.
 */
export async function seedAgents(database: ScriptDatabase, model: string): Promise<Record<string, string>> {
  const wanted = demoAgents(model)
  for (const agent of wanted) {
    await database.execute(insertion(agent))
    await database.execute(nextVersion(agent))
  }
  const rows = await database
    .select({ id: agents.id, name: agents.name })
    .from(agents)
    .where(and(inArray(agents.id, wanted.map(agentId)), isNull(agents.deletedAt)))
    .orderBy(asc(agents.name))
  return Object.fromEntries(rows.map(({ id, name }) => [name, id]))
}

/** Does nothing for an agent that is or was there, nor where another one has its name. */
function insertion(agent: DemoAgent) {
  const { name, description, metadata, visibility, group_ids } = agent.definition
  return sql`WITH created AS (
      INSERT INTO ${agents} (id, organization_id, created_by, name, description, metadata, visibility, group_ids, version)
      VALUES (${agentId(agent)}, ${organizationId('acme')}, ${userId('owner')}, ${name}, ${description},
        ${JSON.stringify(metadata)}::jsonb, ${visibility}, ${JSON.stringify(group_ids)}::jsonb, 1)
      ON CONFLICT DO NOTHING RETURNING id, organization_id
    )
    INSERT INTO ${agentVersions} (agent_id, version, organization_id, definition, author)
    SELECT id, 1, organization_id, ${JSON.stringify(agent.definition)}::jsonb, ${AUTHOR} FROM created`
}

/** The members that the agent's row repeats stay the same. */
function nextVersion(agent: DemoAgent) {
  const definition = sql`${JSON.stringify(agent.definition)}::jsonb`
  const isSeeded = and(
    eq(agentVersions.agentId, agents.id),
    eq(agentVersions.version, agents.version),
    eq(agentVersions.author, AUTHOR),
  )
  return sql`WITH changed AS (
      UPDATE ${agents} SET version = version + 1, updated_at = now()
      WHERE ${and(eq(agents.id, agentId(agent)), isNull(agents.deletedAt))}
        AND EXISTS (SELECT FROM ${agentVersions} WHERE ${isSeeded} AND definition <> ${definition})
      RETURNING id, version, organization_id
    )
    INSERT INTO ${agentVersions} (agent_id, version, organization_id, definition, author)
    SELECT id, version, organization_id, ${definition}, ${AUTHOR} FROM changed`
}
