import { describe, expect, it } from 'vitest'
import { guardedNetwork } from '../../../src/workspace/shell/guarded-network.ts'

const seen: Array<{
  address: string
  method: string | undefined
  authorization: string | null
  body: unknown
}> = []

/** A network of the shell over answers by address. */
function networkOver(answers: Record<string, Response>) {
  seen.length = 0
  const isAllowed = (host: string) => ['a.example', 'b.example'].includes(host)
  return guardedNetwork(isAllowed, async (address, init) => {
    const authorization = new Headers(init.headers).get('authorization')
    seen.push({ address, method: init.method, authorization, body: init.body ?? null })
    return answers[address] ?? new Response('none', { status: 404 })
  })
}

const redirect = (location: string, status = 302) => new Response(null, { status, headers: { location } })
const text = ({ body }: { body: Uint8Array }) => Buffer.from(body).toString()

describe('the network of a shell', () => {
  it('reaches allowed hosts only, by name and by redirect', async () => {
    const network = networkOver({
      'https://a.example/': new Response('hello', { headers: { 'x-a': '1' } }),
      'https://a.example/out': redirect('https://169.254.169.254/'),
      'https://a.example/host': redirect('//evil.example/'),
    })
    expect(await network('https://a.example/')).toMatchObject({
      status: 200,
      url: 'https://a.example/',
      headers: { 'x-a': '1' },
    })
    for (const address of [
      'https://evil.example/',
      'https://a.example.evil.example/',
      'https://a.example@evil.example/',
      'https://127.1/',
      'nothing',
    ]) {
      await expect(network(address)).rejects.toThrow(/does not allow|not a URL/)
    }
    await expect(network('https://a.example/out')).rejects.toThrow('does not allow 169.254.169.254')
    await expect(network('https://a.example/host')).rejects.toThrow('does not allow evil.example')
    expect(seen.map(({ address }) => address)).toEqual([
      'https://a.example/',
      'https://a.example/out',
      'https://a.example/host',
    ])
  })

  it('follows a limited number of redirects, without headers and body to another origin', async () => {
    const network = networkOver({
      'https://a.example/1': redirect('/2', 307),
      'https://a.example/2': redirect('https://b.example/3', 307),
      'https://b.example/3': new Response('end'),
      'https://a.example/loop': redirect('/loop'),
    })
    const headers = { authorization: 'Bearer x' }
    expect(text(await network('https://a.example/1', { method: 'POST', headers, body: 'b' }))).toBe('end')
    expect(seen.map(({ method, authorization, body }) => [method, authorization, body])).toEqual([
      ['POST', 'Bearer x', 'b'],
      ['POST', 'Bearer x', 'b'],
      ['GET', null, null],
    ])
    await expect(network('https://a.example/loop')).rejects.toThrow('too many redirects')
    expect(await network('https://a.example/1', { followRedirects: false })).toMatchObject({ status: 307 })
  })

  it('refuses large bodies and other methods', async () => {
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) })
    const network = networkOver({ 'https://a.example/': new Response(endless) })
    await expect(network('https://a.example/')).rejects.toThrow('more than 4194304 bytes')
    await expect(network('https://a.example/', { method: 'CONNECT' })).rejects.toThrow('not allowed')
  })
})
