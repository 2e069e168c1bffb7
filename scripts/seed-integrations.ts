import { and, eq, like, sql } from 'drizzle-orm'
import { organizations } from '../schema/identity.ts'
import { connectionShares, connections, integrationGrants, integrations } from '../schema/integrations.ts'
import { type StoredCredential, sealStoredCredential } from '../src/integrations/vault/stored-credential.ts'
import type { KeyRing } from '../src/lib/crypto.ts'
import type { ScriptDatabase } from './database.ts'
import { DEMO_ORGANIZATIONS, demoId, groupId, organizationId, userId } from './demo-organizations.ts'
import { ticketDocument } from './local/integration-upstreams/ticket-document.ts'
import type { DemoKeyName } from './local-secrets.ts'

/** Address and credentials of the demo upstreams (`scripts/local/integration-upstreams`). */
export interface DemoUpstreams {
  url: string
  memoryToken: string
  ticketKey: string
}

type Integration = Omit<typeof integrations.$inferInsert, 'id' | 'organizationId'>

const integrationsAt = ({ url }: DemoUpstreams): Integration[] => [
  {
    slug: 'everything',
    displayName: 'Everything',
    description: 'The reference server of the Model Context Protocol, with a tool for each of its features.',
    kind: 'mcp',
    url: `${url}/everything/mcp`,
    authorization: { kind: 'none' },
  },
  {
    slug: 'memory',
    displayName: 'Memory',
    description: 'A graph of what is known about people and things.',
    kind: 'mcp',
    url: `${url}/memory/mcp`,
    authorization: { kind: 'bearer' },
  },
  {
    slug: 'tickets',
    displayName: 'Tickets',
    description: 'A sample API with an OpenAPI document.',
    kind: 'openapi',
    url: `${url}/tickets`,
    document: ticketDocument(`${url}/tickets`),
    authorization: { kind: 'header', header: 'x-api-key' },
  },
]

/** Connections of the first organization. The connection of the memory server is shared with the group `everyone`. */
const CONNECTIONS: ReadonlyArray<{ slug: string; owner: DemoKeyName; shared: boolean }> = [
  { slug: 'memory', owner: 'owner', shared: true },
  { slug: 'tickets', owner: 'owner', shared: false },
  { slug: 'tickets', owner: 'member', shared: false },
]

/** In the form of `newId('conn')`, which the paths of connections take. */
const connectionId = (slug: string, owner: DemoKeyName): string =>
  `conn_${demoId(`connection acme ${slug} ${owner}`).replaceAll('-', '').slice(0, 22)}`

const integrationId = (organization: 'acme' | 'other' | 'broke', slug: string) =>
  demoId(`integration ${organization} ${slug}`)

/**
 * Adds the demo integrations with grants to the group of everybody, and connections of the demo users. Doing it again moves
 * them to where the upstreams are now, and changes nothing else. The job lists their tools.
 */
export async function seedIntegrations(
  database: ScriptDatabase,
  vaultKeys: KeyRing,
  upstreams: DemoUpstreams,
): Promise<void> {
  for (const { slug: organization } of DEMO_ORGANIZATIONS) {
    const owner = organizationId(organization)
    for (const integration of integrationsAt(upstreams)) {
      const id = integrationId(organization, integration.slug)
      await database
        .insert(integrations)
        .values({ id, organizationId: owner, ...integration })
        .onConflictDoUpdate({ target: integrations.id, set: { url: integration.url } })
      const grant = {
        subjectType: 'group' as const,
        subjectId: groupId(organization),
        integration: integration.slug,
      }
      await database
        .insert(integrationGrants)
        .values({
          id: demoId(`integration grant ${organization} ${integration.slug}`),
          organizationId: owner,
          ...grant,
        })
        .onConflictDoNothing()
    }
  }
  await deleteEarlier(database)
  for (const connection of CONNECTIONS) await putConnection(database, vaultKeys, upstreams, connection)
  // Isolates read the new addresses.
  await database
    .update(organizations)
    .set({ epoch: sql`${organizations.epoch} + 1` })
    .where(eq(organizations.id, organizationId('acme')))
}

/** Earlier releases gave connections ids that no path takes. Beside the new ones, calls would have to choose between two. */
const deleteEarlier = (database: ScriptDatabase) =>
  database
    .delete(connections)
    .where(
      and(eq(connections.organizationId, organizationId('acme')), like(connections.id, 'conn\\_demo\\_%')),
    )

async function putConnection(
  database: ScriptDatabase,
  vaultKeys: KeyRing,
  upstreams: DemoUpstreams,
  { slug, owner, shared }: (typeof CONNECTIONS)[number],
): Promise<void> {
  const organization = organizationId('acme')
  const id = connectionId(slug, owner)
  const { origin } = new URL(upstreams.url)
  const credential: StoredCredential =
    slug === 'memory'
      ? { kind: 'bearer', origin, secret: upstreams.memoryToken }
      : { kind: 'header', origin, secret: upstreams.ticketKey }
  const { sealed, vaultKeyId } = sealStoredCredential(
    vaultKeys,
    { organizationId: organization, connectionId: id },
    credential,
  )
  const values = { sealedCredential: sealed, vaultKeyId, status: 'active' as const }
  await database
    .insert(connections)
    .values({
      ...{
        id,
        organizationId: organization,
        integrationId: integrationId('acme', slug),
        ownerUserId: userId(owner),
      },
      ...{
        displayName: `${slug} of ${owner}`,
        broker: 'local' as const,
        upstreamConnectionId: `local_${demoId(id)}`,
      },
      ...values,
    })
    .onConflictDoUpdate({
      target: connections.id,
      set: { ...values, credentialVersion: sql`${connections.credentialVersion} + 1` },
      // A connection that an administrator revoked stays revoked.
      setWhere: sql`${connections.status} <> 'revoked'`,
    })
  if (!shared) return
  await database
    .insert(connectionShares)
    .values({ organizationId: organization, connectionId: id, groupId: groupId('acme'), permission: 'use' })
    .onConflictDoNothing()
}
