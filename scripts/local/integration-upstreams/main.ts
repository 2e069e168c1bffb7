// node scripts/local/integration-upstreams/main.ts --port 8085 --data <folder>, with MEMORY_TOKEN and TICKET_KEY
import { OptionError } from '../../node/start-error.ts'
import { runAsProcess } from '../stand-in-process.ts'
import { startIntegrationUpstreams } from './server.ts'

await runAsProcess('local integration upstreams', { data: { type: 'string' } }, async (values, port) => {
  const { MEMORY_TOKEN: memoryToken, TICKET_KEY: ticketKey } = process.env
  if (typeof values.data !== 'string') throw new OptionError('--data takes a folder')
  if (!memoryToken || !ticketKey) throw new OptionError('MEMORY_TOKEN and TICKET_KEY must be set')
  // The environment is cleared: one of the servers has a tool that shows it.
  for (const name of ['MEMORY_TOKEN', 'TICKET_KEY']) delete process.env[name]
  return startIntegrationUpstreams({ port, folder: values.data, memoryToken, ticketKey })
})
