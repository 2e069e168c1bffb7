/** The OpenAPI document of the sample API, with the parts that documents of real APIs have. */
export const ticketDocument = (url: string) => ({
  openapi: '3.1.0',
  info: { title: 'Tickets', version: '1.0.0', description: 'A small service of tickets, in memory.' },
  servers: [{ url }],
  security: [{ key: [] }],
  paths: {
    '/tickets': {
      get: {
        operationId: 'listTickets',
        summary: 'List tickets',
        parameters: [
          {
            name: 'status',
            in: 'query',
            description: 'Only tickets in one of these states.',
            schema: { type: 'array', items: { $ref: '#/components/schemas/Status' } },
          },
          { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 } },
        ],
        responses: { 200: { description: 'The tickets' } },
      },
      post: {
        operationId: 'createTicket',
        summary: 'Create a ticket',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/NewTicket' } } },
        },
        responses: { 201: { description: 'The ticket' } },
      },
    },
    '/tickets/{ticketId}': {
      parameters: [{ $ref: '#/components/parameters/TicketId' }],
      get: { operationId: 'getTicket', summary: 'Read a ticket', responses: { 200: { description: 'It' } } },
      patch: {
        operationId: 'changeTicket',
        summary: 'Change a ticket',
        requestBody: {
          content: {
            'application/json': {
              schema: {
                type: 'object',
                properties: {
                  status: { $ref: '#/components/schemas/Status' },
                  assignee: { type: ['string', 'null'] },
                },
              },
            },
          },
        },
        responses: { 200: { description: 'The ticket' } },
      },
      delete: {
        operationId: 'deleteTicket',
        summary: 'Delete a ticket',
        responses: { 204: { description: 'Gone' } },
      },
    },
  },
  components: {
    securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
    parameters: {
      TicketId: { name: 'ticketId', in: 'path', required: true, schema: { type: 'string' } },
    },
    schemas: {
      Status: { type: 'string', enum: ['open', 'waiting', 'closed'] },
      NewTicket: {
        type: 'object',
        required: ['title'],
        properties: {
          id: { type: 'string', readOnly: true },
          title: { type: 'string', maxLength: 200 },
          text: { type: 'string' },
          parent: { $ref: '#/components/schemas/NewTicket' },
        },
      },
    },
  },
})
