// The parts of autobahn-js, wampy and ws that the programs and examples use; the packages have no types of their own.

declare module "autobahn" {
  namespace autobahn {
    interface Details {
      topic: string;
      publication: number;
      retained?: boolean;
      publisher?: number;
      publisher_authid?: string;
    }
    type Handler = (args: any[] | undefined, kwargs: Record<string, any> | undefined, details: Details) => void;
    interface Subscription {
      id: number;
      on_unsubscribe: Promise<unknown>;
    }
    interface Session {
      id: number;
      subscribe(topic: string, handler: Handler, options?: object): Promise<Subscription>;
      unsubscribe(subscription: Subscription): Promise<unknown>;
      publish(topic: string, args: any[], kwargs: object, options: object): Promise<{ id: number }>;
      call(procedure: string, args?: unknown[], kwargs?: object): Promise<any>;
    }
  }
  class Connection {
    constructor(options: object);
    isOpen: boolean;
    onopen: (session: autobahn.Session, details: Record<string, any>) => void;
    onclose: (reason: string, details: { reason: string | null; message: string | null }) => boolean;
    open(): void;
    close(): void;
  }
  class Result {
    args: any[];
    kwargs: Record<string, any>;
  }
  const autobahn: {
    Connection: typeof Connection;
    Result: typeof Result;
    log?: { debug?: (...values: unknown[]) => void };
    auth_cra: {
      sign(key: string, challenge: string): string;
      derive_key(secret: string, salt: string, iterations: number, length: number): string;
    };
  };
  export default autobahn;
}

declare module "wampy" {
  interface Event {
    details: Record<string, any>;
    argsList?: any[];
    argsDict?: Record<string, any>;
  }
  export class Wampy {
    constructor(url: string, options: object);
    connect(): Promise<Record<string, any>>;
    getSessionId?(): number;
    subscribe(
      topic: string,
      handler: (event: Event) => void,
      options?: object,
    ): Promise<{ subscriptionKey: string; subscriptionId: number }>;
    unsubscribe(key: string, handler: (event: Event) => void): Promise<unknown>;
    publish(topic: string, payload: object, options?: object): Promise<{ publicationId: number }>;
    call(procedure: string, payload: object): Promise<{ argsList?: any[]; argsDict?: Record<string, any> }>;
  }
}

declare module "wampy/wampcra.js" {
  export function sign(secret: string): (method: string, extra: object) => string;
}

declare module "ws" {
  export default class WebSocket {}
}
