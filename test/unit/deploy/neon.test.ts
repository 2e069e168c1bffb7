import { describe, expect, it } from 'vitest'
import { NeonApi } from '../../../scripts/deploy/neon.ts'
import { MovingClock } from '../../harness/cloud/moving-clock.ts'

const SETTINGS = {
  project: 'acme',
  region: 'aws-eu-central-1',
  database: 'headgate',
  role: 'headgate_owner',
}

/** Neon, which answers everything with this. */
function neonOf(status: number, answer: unknown) {
  const sent: Array<{ path: string; body: unknown }> = []
  const neon = new NeonApi('neon-key', {
    baseUrl: 'https://neon.example',
    clock: new MovingClock(),
    fetch: (async (url: string, { body }: RequestInit) => {
      sent.push({ path: new URL(url).pathname, body: JSON.parse(String(body)) })
      return Response.json(answer, { status })
    }) as typeof fetch,
  })
  return { neon, sent }
}

describe('a project of Neon', () => {
  it('is created with the database and the role of the settings', async () => {
    const { neon, sent } = neonOf(201, {
      project: { id: 'project-1' },
      connection_uris: [{ connection_uri: 'postgres://x' }],
    })
    expect(await neon.createProject(SETTINGS)).toEqual({ id: 'project-1', url: 'postgres://x' })
    expect(sent).toEqual([
      {
        path: '/projects',
        body: {
          project: {
            name: 'acme',
            region_id: 'aws-eu-central-1',
            branch: { database_name: 'headgate', role_name: 'headgate_owner' },
          },
        },
      },
    ])
  })

  it('gets a branch, and an older one of the same name is no restore point', async () => {
    const created = neonOf(201, { branch: { id: 'br-1' } })
    await created.neon.createBranch('project-1', 'before-0008_drop')
    expect(created.sent).toEqual([
      { path: '/projects/project-1/branches', body: { branch: { name: 'before-0008_drop' } } },
    ])
    const { neon } = neonOf(409, { message: 'branch already exists' })
    await expect(neon.createBranch('project-1', 'before-0008_drop')).rejects.toThrow(
      'Neon answered 409 to the branch before-0008_drop',
    )
  })
})
