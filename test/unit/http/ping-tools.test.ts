import { expect, it } from 'vitest'
import { pingTools } from '../../../src/responses/tools/workspace/workspace-client.ts'

const answering = (status: number, headers: Record<string, string> = {}) => ({
  fetch: async (url: string) =>
    new Response(null, { status: url.endsWith('/health/ready') ? status : 404, headers }),
})

it('reads the version of the script of tools, which a local one has not', async () => {
  expect(await pingTools(answering(200, { 'x-headgate-tools-version': 'a-version' }))).toBe('a-version')
  expect(await pingTools(answering(200))).toBeNull()
})

it('fails when no object of the script answers', async () => {
  await expect(pingTools(answering(503))).rejects.toThrow('the script of tools answered 503')
})
