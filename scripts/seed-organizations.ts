import { and, eq, inArray, sql } from 'drizzle-orm'
import { auditRecords, creditEntries } from '../schema/governance.ts'
import {
  apiKeys,
  entitlements,
  groupMemberships,
  groups,
  memberships,
  organizations,
  users,
} from '../schema/identity.ts'
import { grants } from '../schema/models.ts'
import { parseApiKey } from '../src/identity/api-key.ts'
import { digestToken } from '../src/identity/secret-token.ts'
import { GENESIS, nextLink } from '../src/ledger/records/chain.ts'
import { creditRowOf } from '../src/ledger/records/extracted-rows.ts'
import { changeText, copiedColumns } from '../src/ledger/records/record-body.ts'
import { HOME_SHARD } from '../src/ledger/shards/shards.ts'
import type { KeyRing } from '../src/lib/crypto.ts'
import { KEY_SCOPES } from '../src/wire/key-scopes.ts'
import type { ScriptDatabase } from './database.ts'
import {
  DEMO_CALLERS,
  DEMO_ORGANIZATIONS,
  demoId,
  EVERYONE,
  groupId,
  organizationId,
  userId,
} from './demo-organizations.ts'
import type { DemoKeys } from './local-secrets.ts'
import { StartError } from './node/start-error.ts'

/**
 * Creates the demo organizations and their callers once. The keys come last, so a run that was cut off is finished
 * by the next one; when all keys are there, only their digests are brought in line with the peppers, and whatever
 * people changed in between stays.
 *
 * @throws StartError for a key that is none; what the database throws
 */
export async function seedOrganizations(
  database: ScriptDatabase,
  peppers: KeyRing,
  keys: DemoKeys,
): Promise<void> {
  const rows = keyRows(peppers, keys)
  const ids = rows.map(({ id }) => id)
  const held = await database.select({ id: apiKeys.id }).from(apiKeys).where(inArray(apiKeys.id, ids))
  if (held.length < rows.length) {
    await insertPeople(database)
    await insertRights(database)
  }
  await database
    .insert(apiKeys)
    .values(rows)
    .onConflictDoUpdate({
      target: apiKeys.id,
      set: { digest: sql`excluded.digest`, pepperId: sql`excluded.pepper_id` },
    })
}

async function insertPeople(database: ScriptDatabase): Promise<void> {
  await database
    .insert(organizations)
    .values(DEMO_ORGANIZATIONS.map(({ slug, name }) => ({ id: organizationId(slug), name, slug })))
    .onConflictDoNothing()
  await database
    .insert(users)
    .values(
      DEMO_CALLERS.map(({ name, organization }) => ({
        id: userId(name),
        email: `${name}@${organization}.example`,
        name,
      })),
    )
    .onConflictDoNothing()
  await database
    .insert(memberships)
    .values(
      DEMO_CALLERS.map(({ name, organization, role, rateLimitPerMinute }) => ({
        organizationId: organizationId(organization),
        userId: userId(name),
        role,
        rateLimitPerMinute,
      })),
    )
    .onConflictDoNothing()
}

async function insertRights(database: ScriptDatabase): Promise<void> {
  await database
    .insert(groups)
    .values(
      DEMO_ORGANIZATIONS.map(({ slug }) => ({
        id: groupId(slug),
        organizationId: organizationId(slug),
        name: EVERYONE,
      })),
    )
    .onConflictDoNothing()
  await database
    .insert(groupMemberships)
    .values(
      DEMO_CALLERS.filter(({ everyone }) => everyone).map(({ name, organization }) => ({
        organizationId: organizationId(organization),
        groupId: groupId(organization),
        userId: userId(name),
      })),
    )
    .onConflictDoNothing()
  await database
    .insert(entitlements)
    .values(
      DEMO_CALLERS.flatMap(({ name, organization, entitlements: names }) =>
        names.map((entitlement) => ({
          organizationId: organizationId(organization),
          userId: userId(name),
          name: entitlement,
        })),
      ),
    )
    .onConflictDoNothing()
  await database.insert(grants).values(grantRows()).onConflictDoNothing()
  for (const { slug, credits } of DEMO_ORGANIZATIONS) {
    if (credits > 0) await grantCredits(database, { id: organizationId(slug), slug, credits })
  }
}

/**
 * Begins the chain of an organization with a grant, as its ledger would: `audit verify` finds credits without a record.
 * A chain that has begun stays as it is.
 */
async function grantCredits(
  database: ScriptDatabase,
  organization: { id: string; slug: string; credits: number },
): Promise<void> {
  const { id: owner, slug, credits: amount } = organization
  const [id, reason] = [demoId(`credits ${slug}`), 'demo data']
  const change = {
    id: demoId(`credits change ${slug}`),
    requestId: 'seed',
    organizationId: owner,
    at: Date.now(),
    actor: { userId: null, keyId: null, administrator: 'seed', ip: null },
    action: 'credits.granted',
    resource: `credits/${id}`,
    detail: { amount, reason },
  }
  const chain = { organizationId: owner, shard: HOME_SHARD }
  const link = nextLink(chain, GENESIS, change.id, changeText(change, { id, amount, reason }))
  await database
    .insert(auditRecords)
    .values({ ...copiedColumns(JSON.parse(link.body)), ...link })
    .onConflictDoNothing()
  // Taken from what is stored: a run that was cut off has written the record at another time.
  const [first] = await database
    .select({ body: auditRecords.body })
    .from(auditRecords)
    .where(
      and(
        eq(auditRecords.organizationId, owner),
        eq(auditRecords.shard, HOME_SHARD),
        eq(auditRecords.sequence, link.sequence),
      ),
    )
  const entry = first && creditRowOf(JSON.parse(first.body))
  if (entry) await database.insert(creditEntries).values(entry).onConflictDoNothing()
}

/** Owners and the group of everyone may use every model; `restricted` is in neither. */
function grantRows() {
  return DEMO_ORGANIZATIONS.flatMap(({ slug }) => [
    {
      organizationId: organizationId(slug),
      subjectType: 'role' as const,
      subjectId: 'owner',
      modelId: '*',
    },
    {
      organizationId: organizationId(slug),
      subjectType: 'group' as const,
      subjectId: groupId(slug),
      modelId: '*',
    },
  ])
}

function keyRows(peppers: KeyRing, keys: DemoKeys) {
  return DEMO_CALLERS.map(({ name, organization, keyRevoked }) => {
    const parsed = parseApiKey(keys[name])
    if (parsed === null) throw new StartError(`the demo key ${name} has no valid form`)
    const { digest, pepperId } = digestToken(peppers, keys[name])
    return {
      id: parsed.id,
      organizationId: organizationId(organization),
      userId: userId(name),
      label: `demo ${name}`,
      digest,
      pepperId,
      scopes: [...KEY_SCOPES],
      revokedAt: keyRevoked ? new Date() : null,
    }
  })
}
