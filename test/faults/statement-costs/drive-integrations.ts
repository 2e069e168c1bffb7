import { Browser, locationOf } from '../../harness/browser.ts'
import { send } from '../../harness/send.ts'
import { type Created, managing } from './surfaces.ts'
import { TOOL, type World } from './world.ts'

/** Integrations, their tools and their connections. */
export async function driveIntegrations(world: World): Promise<void> {
  const { surfaces, tenant, server, unique } = world
  const { manage } = managing(surfaces)
  const { base, key, userId } = tenant
  const integration = await manage<Created & { slug: string }>('POST', `${base}/integrations`, {
    kind: 'mcp',
    slug: unique('tools'),
    url: server.url,
    authorization: { kind: 'bearer' },
    approval: 'manual',
  })
  const path = `${base}/integrations/${integration.id}`
  const grant = await manage<Created>('POST', `${base}/integration-grants`, {
    subject_type: 'organization',
    integration: integration.slug,
  })
  await manage('GET', `${base}/integration-grants?limit=2`)
  await manage('GET', `${base}/integrations?limit=2`)
  await manage('GET', path)
  await manage('PUT', path, { description: 'Another.' })
  const connection = await manage<Created>('POST', `${base}/connections`, {
    integration: integration.slug,
    display_name: 'Account',
    user_id: userId,
    credential: { secret: unique('secret') },
  })
  await manage('POST', `${path}/refresh`, {})
  await manage('GET', `${path}/tools`)
  await manage('POST', `${path}/tools/approve`, {})
  await manage('POST', `${path}/tools/reject`, { tools: [TOOL] })
  await manage('POST', `${path}/tools/disable`, { tools: [TOOL] })
  await manage('POST', `${path}/tools/enable`, { tools: [TOOL] })
  await manage('GET', `${base}/connections?limit=2`)
  await manage('GET', `${base}/connections?limit=2&user_id=${userId}&status=active`)
  await manage('GET', `${base}/connections?limit=2&integration=${integration.slug}`)
  const own = `${base}/connections/${connection.id}`
  await manage('GET', own)
  await manage('PUT', own, { display_name: 'Another' })
  const group = await manage<Created>('POST', `${base}/groups`, { name: unique('sharing') })
  await manage('PUT', `${base}/groups/${group.id}/members/${userId}`)
  await manage('PUT', `${own}/shares/${group.id}`, { permission: 'use' })
  await manage('DELETE', `${own}/shares/${group.id}`)
  const ofCaller = '/v1/integrations/connections'
  await surfaces.ask(key, 'GET', ofCaller)
  await surfaces.ask(key, 'POST', `${ofCaller}/${integration.slug}/default`, { connection_id: connection.id })
  await surfaces.ask(key, 'PUT', `${ofCaller}/${connection.id}/shares/${group.id}`, { permission: 'use' })
  await surfaces.ask(key, 'DELETE', `${ofCaller}/${connection.id}/shares/${group.id}`)
  await connectAccount(world)
  await surfaces.ask(key, 'DELETE', `${ofCaller}/${connection.id}`)
  await leaveConnection(world)
  await manage('DELETE', `${base}/integration-grants/${grant.id}`)
  await manage('DELETE', path)
}

/** A person connects an account by its authorization server. */
async function connectAccount({ surfaces, tenant, authorizationServer, unique }: World): Promise<void> {
  const { manage } = managing(surfaces)
  const { base, key, userId } = tenant
  const integration = await manage<Created & { slug: string }>('POST', `${base}/integrations`, {
    kind: 'mcp',
    slug: unique('oauth'),
    url: authorizationServer.resource,
    authorization: { kind: 'oauth' },
  })
  const connection = await manage<Created>('POST', `${base}/connections`, {
    integration: integration.slug,
    display_name: 'Account',
    user_id: userId,
  })
  const own = `${base}/connections/${connection.id}`
  await manage('POST', `${own}/connect`, {})
  const { url } = await surfaces.ask<{ url: string }>(
    key,
    'POST',
    `/v1/integrations/connections/${connection.id}/connect`,
    {},
  )
  const browser = new Browser()
  await surfaces.request('GET', new URL(url).pathname)
  await browser.get(url)
  await surfaces.request('POST', '/connect/no-such-link')
  await surfaces.request('GET', '/connect/callback?state=none&code=x')
  const returned = await send(locationOf(await browser.submit(url)))
  await browser.get(locationOf(returned))
  await manage('GET', own)
  await manage('DELETE', own)
}

/** An account that stays, preferred by its user and shared, with a link that nobody has opened. */
async function leaveConnection(world: World): Promise<void> {
  const { surfaces, tenant, authorizationServer, unique } = world
  const { manage } = managing(surfaces)
  const { base, userId } = tenant
  const slug = unique('left')
  await manage('POST', `${base}/integrations`, {
    kind: 'mcp',
    slug,
    url: authorizationServer.resource,
    authorization: { kind: 'oauth' },
  })
  const connection = { integration: slug, display_name: 'Account', user_id: userId }
  const { id } = await manage<Created>('POST', `${base}/connections`, connection)
  const group = await manage<Created>('POST', `${base}/groups`, { name: unique('left') })
  await manage('PUT', `${base}/connections/${id}/shares/${group.id}`, { permission: 'use' })
  await manage('POST', `${base}/connections/${id}/connect`, {})
  const bearing = await manage<Created>('POST', `${base}/integrations`, {
    kind: 'mcp',
    slug: unique('kept'),
    url: world.server.url,
    authorization: { kind: 'bearer' },
  })
  await manage('POST', `${base}/connections`, {
    ...connection,
    integration: bearing.slug,
    credential: { secret: unique('secret') },
  })
}
