import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { ServerFaults, ServerOptions } from '../harness/authorization-server.ts'
import { createUnreadIntegration, type ManagedConnection } from '../harness/connections.ts'
import { query } from '../harness/gateway.ts'
import { followConnectLink, type OAuthWorker, startOAuthWorker } from '../harness/oauth-worker.ts'
import { administrator, createTenant } from '../harness/tenant.ts'

let oauth: OAuthWorker
beforeAll(async () => {
  oauth = await startOAuthWorker(12)
})
afterAll(() => oauth?.stop())

/** A connection whose account is connected at a server of its own. */
async function connected(options: Partial<ServerOptions>) {
  const { worker } = oauth
  const server = oauth.newServer(options)
  const tenant = await createTenant(worker, { credits: 0, models: [] })
  const { ask, call } = administrator(worker)
  const slug = await createUnreadIntegration(worker, tenant, {
    url: server.resource,
    authorization: { kind: 'oauth' },
  })
  const { id } = await ask<ManagedConnection>('POST', `${tenant.base}/connections`, {
    ...{ integration: slug, display_name: 'Account', user_id: tenant.userId },
  })
  const path = `${tenant.base}/connections/${id}`
  const { url } = await ask<{ url: string }>('POST', `${path}/connect`, {})
  expect((await followConnectLink(url)).status).toBe(200)
  expect(server.isLive(server.lastAccessToken)).toBe(true)
  return { server, id, path, ask, call }
}

const log = () => readFileSync(join(oauth.worker.logFolder, 'workerd.log'), 'utf8')
const isGone = async (id: string) =>
  (await query(oauth.worker, 'select id from connections where id = $1', [id])).length === 0

describe.concurrent('the grant of an account ends at its authorization server', () => {
  it.each(['client_secret_basic', 'client_secret_post', 'none'])(
    'when its connection is deleted, by a client that authenticates as the server takes it (%s)',
    async (method) => {
      const { server, id, path, ask } = await connected({
        revokes: true,
        metadata: { token_endpoint_auth_methods_supported: [method] },
      })
      await ask('DELETE', path)
      expect(await isGone(id)).toBe(true)
      await vi.waitFor(() => expect(server.revocations).toHaveLength(1))
      expect(server.revocations[0]).toMatchObject({
        client: 'client-1',
        token: expect.stringMatching(/^refresh-/),
        token_type_hint: 'refresh_token',
      })
      expect(server.isLive(server.lastAccessToken)).toBe(false)
    },
  )

  it('when its connection is revoked, once', async () => {
    const { server, path, ask } = await connected({ revokes: true })
    await ask('PUT', path, { status: 'revoked' })
    await vi.waitFor(() => expect(server.revocations).toHaveLength(1))
    await ask('DELETE', path)
    expect(server.revocations).toHaveLength(1)
  })

  it('unless the server has no endpoint for it', async () => {
    const { server, id, path, ask } = await connected({})
    await ask('DELETE', path)
    expect(await isGone(id)).toBe(true)
    expect(server.requests).not.toContain('POST /revoke')
  })

  it.each<NonNullable<ServerFaults['revocation']>>(['error', 'redirect', 'endless'])(
    'and a server that fails (%s) keeps no connection',
    async (revocation) => {
      const { server, id, path, ask } = await connected({ revokes: true })
      server.faults = { revocation }
      await ask('DELETE', path)
      expect(await isGone(id)).toBe(true)
      await vi.waitFor(() => expect(log()).toContain(`"connection_id":"${id}"`))
      expect(server.revocations).toHaveLength(1)
      expect(log()).not.toMatch(/refresh-[0-9a-f]|access-[0-9a-f]|text-of-the-server/)
    },
  )

  it('and no address is called that the guard refuses', async () => {
    const metadata = { revocation_endpoint: 'http://169.254.169.254/revoke' }
    const { id, path, ask } = await connected({ metadata })
    await ask('DELETE', path)
    expect(await isGone(id)).toBe(true)
    await vi.waitFor(() => expect(log()).toMatch(new RegExp(`grant_not_revoked.*${id}.*may not be called`)))
  })

  it('and a credential that does not open keeps no connection', async () => {
    const { server, id, path, ask } = await connected({ revokes: true })
    await query(oauth.worker, "update connections set sealed_credential = 'broken' where id = $1", [id])
    await ask('DELETE', path)
    expect(await isGone(id)).toBe(true)
    expect(server.revocations).toEqual([])
  })
})
